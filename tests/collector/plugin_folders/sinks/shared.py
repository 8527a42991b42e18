"""No sink: what sinks of this folder would share."""
