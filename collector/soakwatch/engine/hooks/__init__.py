"""Hooks: actions triggered by a finding, or the start or end of a run. None of them delays the run."""
