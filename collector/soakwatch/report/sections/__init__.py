"""Sections of the report, one a file."""
