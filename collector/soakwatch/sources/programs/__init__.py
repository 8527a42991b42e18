"""Generators that the run itself starts, restarts and ends: the process, its supervisor, and its level."""
