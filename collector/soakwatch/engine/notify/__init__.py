"""Notifications: people hear of the start, the first failure and the end of a run. None of it holds up the run."""
