"""The HTTP server of a run or of ``soakwatch serve``; on loopback by default."""
