"""A folder of runs: what they are, how they stand, and what may be done with them."""
