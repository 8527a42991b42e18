"""Cells, times, units and columns of imported tables."""
