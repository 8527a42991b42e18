"""Statistics: pure functions with references, one topic a file."""
