"""Sealing a record that is open for writing, and signing the seal by an SSH key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.ssh_signature import SignatureError, sign
from soakwatch.record import Record, RecordView
from soakwatch.record.seal import Checked
from soakwatch.runs.time_stamps import TimeStampError, time_stamp


@dataclass(frozen=True, slots=True)
class Sealing:
    """By what a seal is signed: an SSH key, or nothing; and the address of who stamps its time, or ""."""

    key: Path | None = None
    timestamp: str = ""

    def try_out(self) -> None:
        """Sign something, so that a key that cannot be used is found out before a run. Raises SignatureError."""
        if self.key is not None:
            sign("a trial\n", self.key)


def seal(record: Record, how: Sealing, time_ns: int | None = None) -> tuple[Checked, str]:
    """Seal all that the record holds, at a time (UTC ns; default: now), sign the seal and let it be stamped; what came
    of it, and why it could not be signed or stamped, or "".

    Raises RecordError.
    """
    made = record.put_seal(time.time_ns() if time_ns is None else time_ns)
    doubts: list[str] = []
    if how.key is not None and not made.signature:
        try:
            record.sign_seal(made.number, sign(made.document, how.key))
        except SignatureError as error:
            doubts.append(str(error))
    if how.timestamp and not made.stamp:
        try:
            record.sign_seal(made.number, "", time_stamp(made.document, how.timestamp))
        except TimeStampError as error:
            doubts.append(str(error))
    with RecordView.open(record.path) as view:
        return view.check(), "; ".join(doubts)
