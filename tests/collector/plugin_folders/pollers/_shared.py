"""Not a source: its name begins with an underscore."""
