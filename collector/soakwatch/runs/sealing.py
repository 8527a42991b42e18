"""Sealing a record that is open for writing, and signing the seal by an SSH key."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.ssh_signature import sign
from soakwatch.record import Record
from soakwatch.record.seal import Checked


@dataclass(frozen=True, slots=True)
class Sealing:
    """By what a seal is signed: an SSH key, or nothing."""

    key: Path | None = None

    def try_out(self) -> None:
        """Sign something, so that a key that cannot be used is found out before a run. Raises SignatureError."""
        if self.key is not None:
            sign("a trial\n", self.key)


def seal(record: Record, how: Sealing) -> tuple[Checked, str]:
    """Seal all that the record holds, and sign the seal; what came of it, and why it could not be signed, or "".

    Raises RecordError.
    """
    made = record.put_seal(time.time_ns())
    doubt = ""
    if how.key is not None and not made.signature:
        try:
            signature = sign(made.document, how.key)
        except SoakwatchError as error:
            doubt = str(error)
        else:
            record.sign_seal(made.number, signature)
            made = replace(made, signature=signature)
    return record.check(), doubt
