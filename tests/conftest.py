"""Options of the tests as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where data that is no part of the project lies."""
    parser.addoption(
        "--recordings",
        type=Path,
        default=None,
        metavar="DIR",
        help="recorded devices for tests/recordings: DIR/snmpsim/NAME.snmprec[.gz] and DIR/data/NAME.json[.gz]",
    )
