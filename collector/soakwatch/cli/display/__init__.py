"""Terminal display of a running soak."""
