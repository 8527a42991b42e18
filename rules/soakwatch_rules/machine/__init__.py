"""What a machine reported of itself, typed, and what of it costs throughput or makes results vary."""
