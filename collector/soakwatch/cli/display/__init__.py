"""What a terminal shows of a running soak."""
