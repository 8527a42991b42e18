"""Ten thousand random changes of a sealed record: each is found, and none changes a verdict without a word."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from tests.commands import Tally
from tests.reliability.changed_records import attempts, sealed_run

ATTEMPTS = int(os.environ.get("ATTEMPTS", "10000"))
AT_ONCE = 2
PIECE = 250


def both(tmp_path: Path) -> None:
    """The record that is changed, and the one whose parts are put into it."""
    sealed_run(tmp_path / "one", seed=1)
    sealed_run(tmp_path / "two", seed=2)


def test_a_few_random_changes_are_found(tmp_path: Path) -> None:
    """Some of each kind."""
    both(tmp_path)
    counts, wrong = attempts(tmp_path, 0, 66)
    assert not wrong
    assert counts["found"] > 33


@pytest.mark.slow
def test_no_random_change_is_silent(tmp_path: Path, tally: Tally) -> None:
    """Bits, bytes, pages, values, rows, tables and files; what is not found left the content as it was."""
    both(tmp_path)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with ProcessPoolExecutor(AT_ONCE) as pool:
        pieces = range(0, ATTEMPTS, PIECE)
        ended = pool.map(attempts, [tmp_path] * len(pieces), pieces, [min(PIECE, ATTEMPTS - at) for at in pieces])
        for some, failures in ended:
            counts += some
            wrong += failures
    said = ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items()))
    what = "random changes of a sealed record: bits, bytes, pages, cuts, values, rows, tables and files of another run"
    tally(f"{what} ({said})", counts.total(), wrong)
    assert counts.total() == ATTEMPTS
