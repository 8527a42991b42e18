"""A run while it goes on: phases, polls, events, loads, hooks, notifications, and its end."""
