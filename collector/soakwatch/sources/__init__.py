"""What brings samples: pollers, loads, transports, device profiles, receivers and result files."""
