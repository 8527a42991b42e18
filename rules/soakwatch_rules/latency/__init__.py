"""Latency cut into blocks, and the intervals in which it was high."""
