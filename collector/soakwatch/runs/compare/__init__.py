"""Runs side by side: outcomes, figures and how they changed, set-up; targets matched and phases aligned."""
