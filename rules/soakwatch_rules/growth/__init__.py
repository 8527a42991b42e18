"""Growth of single lifetimes, of series that follow a load, and of memory sums."""
