"""The vocabulary: what a sample, a poll and a metric are. It imports nothing of ours; all others import it."""
