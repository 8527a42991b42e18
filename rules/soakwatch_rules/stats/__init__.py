"""Pure functions with references, one topic a file."""
