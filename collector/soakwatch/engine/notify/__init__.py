"""Notifications: people are told of the start, the first failure and the end of a run; none delays the run."""
