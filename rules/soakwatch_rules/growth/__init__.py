"""Growth of single lifetimes, of what follows a load, and of sums of memory."""
