"""Network systems by their command line: one interactive session, read-only commands, tolerant parsers."""
