"""The collector's side of the agent: the way to it, what is said on it, and how the agent is put on a host."""
