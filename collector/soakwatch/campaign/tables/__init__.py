"""The tables of a campaign: figures of its cells as pivots, what is derived from them, and its findings."""
