"""The option that writes golden outputs anew: ``pytest tests/agent --update-golden``."""

from __future__ import annotations

import pytest

collect_ignore = ["roots"]  # recorded machines, not tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--update-golden``."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the expected outputs of recorded machines anew"
    )
