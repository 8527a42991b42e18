"""Measured error rates of the rules: one generated table a rule, NAME.md."""

from __future__ import annotations

from importlib.resources import files


def table(rule: str) -> str | None:
    """The measured table of a rule in Markdown; None if there is none."""
    match = files(__package__) / f"{rule}.md"
    return match.read_text(encoding="utf-8") if match.is_file() else None
