"""One command a file, each with a click command called ``command``: the directory is the registry."""
