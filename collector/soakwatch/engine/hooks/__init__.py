"""Hooks: actions that a finding, the start or the end of a run triggers. None of them delays the run."""
