"""Sentences of findings: numbers, times and shapes in words."""
