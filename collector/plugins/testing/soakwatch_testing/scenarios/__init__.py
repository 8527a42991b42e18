"""Runs of known truth, seeded: what rules are measured on."""
