"""The agent's own version, as the collector compares it with its own."""

VERSION = "0.1.0"
