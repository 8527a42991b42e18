"""Campaigns: one plan in many variants, repeated, in one table."""
