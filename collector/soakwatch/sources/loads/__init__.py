"""Traffic generators as sources of samples, one a file: the directory is the registry."""
