"""How often each rule was wrong when it was measured: one generated table a rule, NAME.md."""

from __future__ import annotations

from importlib.resources import files


def table(rule: str) -> str | None:
    """The measured table of a rule in Markdown; None where none was written."""
    match = files(__package__) / f"{rule}.md"
    return match.read_text(encoding="utf-8") if match.is_file() else None
