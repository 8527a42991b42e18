"""Soakwatch: watches a device under test through a soak run and says pass, fail or inconclusive, with evidence."""
