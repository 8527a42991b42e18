"""Targets that are no device by themselves: other programs run on them beside what is watched."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from soakwatch.judge.judged_record import JudgeableRecord

SHARED_KEY: Final = "shared"
"""Under which a record keeps their names."""


def shared_text(targets: Iterable[str]) -> str:
    """How the record keeps them."""
    return json.dumps(sorted(targets))


def shared_of(record: JudgeableRecord) -> frozenset[str]:
    """The names of these targets in a record; none where it keeps none."""
    return frozenset(map(str, json.loads(record.meta(SHARED_KEY) or "[]")))
