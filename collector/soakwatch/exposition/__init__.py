"""What exporters say: the exposition formats read, and mapped to the catalogue by data (``maps/*.yaml``)."""
