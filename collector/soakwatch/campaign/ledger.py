"""The ledger of a campaign: what was begun and how it ended, one JSON object a line, appended, synced, never changed.

A line that was cut by a crash at the end of the file is as if it had never been written: what it told is found again in
the folder of its run. Numbers of lines without gaps show that none is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.campaign.campaign_model import CampaignError
from soakwatch.core.file_lock import lock_file
from soakwatch.core.private_files import PRIVATE
from soakwatch.core.yaml import Plain

LEDGER = "ledger.jsonl"
VERSION = 1

CAMPAIGN, BEGIN, RESUME, END, LOST, ENOUGH, STOPPED, COMPLETE = (
    "campaign",
    "begin",
    "resume",
    "end",
    "lost",
    "enough",
    "stopped",
    "complete",
)
TERMINAL_LOST = "terminal_lost"
"""That nothing more could be shown, and the campaign went on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line. ``cell``, ``repetition`` and ``attempt`` name the run it is about, "" and 0 where it is about none."""

    number: int
    time_ns: int
    kind: str
    cell: str = ""
    repetition: int = 0
    attempt: int = 0
    facts: Mapping[str, Plain] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A fact that is text; "" where there is none."""
        value = self.facts.get(name)
        return value if isinstance(value, str) else ""

    def whole(self, name: str) -> int | None:
        """A fact that is a whole number."""
        value = self.facts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def numbers(self, name: str) -> dict[str, float]:
        """A fact that is numbers by name; empty where there is none."""
        value = self.facts.get(name)
        given = value if isinstance(value, dict) else {}
        return {key: float(number) for key, number in given.items() if isinstance(number, int | float)}


def read_ledger(folder: Path) -> tuple[Entry, ...]:
    """The lines of a campaign's ledger. Raises CampaignError if there is none, or a line is missing or damaged."""
    file = folder / LEDGER
    try:
        raw = file.read_bytes()
    except OSError:
        raise CampaignError(f"{folder} is not a campaign folder: it has no {LEDGER}; name campaigns/NAME") from None
    return tuple(_entries(file, raw)[0])


def _entries(file: Path, raw: bytes) -> tuple[list[Entry], int]:
    """The entries, and how many bytes of the file they are."""
    entries: list[Entry] = []
    at = 0
    while (end := raw.find(b"\n", at)) >= 0:
        entry = _entry(raw[at:end])
        if entry is None or entry.number != len(entries):
            if end + 1 == len(raw) and entry is None:
                break  # a sector of zeros behind a crash can end with a line break too
            raise CampaignError(f"{file}:{len(entries) + 1}: this line is damaged, or one before it is missing")
        entries.append(entry)
        at = end + 1
    return entries, at


def _entry(line: bytes) -> Entry | None:
    try:
        data = json.loads(line)
        return Entry(
            int(data.pop("n")),
            int(data.pop("time_ns")),
            str(data.pop("kind")),
            str(data.pop("cell", "")),
            int(data.pop("repetition", 0)),
            int(data.pop("attempt", 0)),
            data,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class Ledger:
    """A ledger that is written; made by ``open_ledger``."""

    def __init__(self, descriptor: int, entries: list[Entry]) -> None:
        self._descriptor = descriptor
        self.entries = entries

    def add(
        self, time_ns: int, kind: str, *, cell: str = "", repetition: int = 0, attempt: int = 0, **facts: Plain
    ) -> Entry:
        """Append a line; it is on the disk when this returns. Raises OSError."""
        entry = Entry(len(self.entries), time_ns, kind, cell, repetition, attempt, facts)
        about: dict[str, Plain] = {"cell": cell, "repetition": repetition, "attempt": attempt} if cell else {}
        line: dict[str, Plain] = {"n": entry.number, "time_ns": time_ns, "kind": kind, **about, **facts}
        os.write(self._descriptor, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        os.fsync(self._descriptor)
        self.entries.append(entry)
        return entry


@contextmanager
def open_ledger(folder: Path) -> Iterator[Ledger]:
    """The ledger of a folder, made if there is none, for one writer. A line that a crash cut is taken off.

    Raises CampaignError if another process writes it, or it is damaged.
    """
    file = folder / LEDGER
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
    try:
        try:
            lock_file(descriptor)
        except OSError:
            raise CampaignError(
                f"the campaign in {folder} is being run by another process: wait for it, or press Ctrl-C there"
            ) from None
        entries, length = _entries(file, file.read_bytes())
        os.ftruncate(descriptor, length)
        yield Ledger(descriptor, entries)
    finally:
        os.close(descriptor)
