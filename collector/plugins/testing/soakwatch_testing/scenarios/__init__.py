"""Seeded runs of known truth, on which rules are measured."""
