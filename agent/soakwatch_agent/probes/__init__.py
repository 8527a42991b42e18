"""Local sources, one a file: the directory is the registry."""
