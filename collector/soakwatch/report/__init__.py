"""The report: sections, one a file, and one renderer a format."""
