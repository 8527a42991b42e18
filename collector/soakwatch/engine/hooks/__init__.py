"""Hooks: what a finding, the begin or the end of a run sets off. None of it holds up the run."""
