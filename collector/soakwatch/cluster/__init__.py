"""Where work is done: processes of this machine, or workers of a cluster."""
