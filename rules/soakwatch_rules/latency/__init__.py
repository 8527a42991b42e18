"""Latency in blocks, and the stretches in which it was high."""
