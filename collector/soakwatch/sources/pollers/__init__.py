"""Sources of samples on targets, one a file: the directory is the registry."""
