"""What happened to a device, what was announced, and what an event cost."""
