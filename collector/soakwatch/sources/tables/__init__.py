"""Cells, times, units and columns of a table that is imported."""
