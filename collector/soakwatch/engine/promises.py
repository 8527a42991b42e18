"""What a run does once and not twice, however often its monitor is killed: each is marked in its record.

A deed is marked as begun before it is begun, and as done after it. What a monitor that was killed had begun and not
marked as done may have happened: it is not done again, and that is said (at most once). What can be repeated without
harm (the verdict, the report files, what a sink is sent) is marked when it is done, and repeated until then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.record import Record, RecordView
from soakwatch_model.tree import parse_json

META = "promises"
"""The meta that holds, as JSON, the deeds of a run by name: ``begun`` or ``done``."""
POLLED = "polled_ns"
"""The meta that says when (UTC ns) polling ended; a monitor that goes on with the run has but its end to make."""
REPORT, SINKS, END = "report files", "sinks", "end"
_BEGUN, _DONE = "begun", "done"


def hook_deed(number: int, what: str) -> str:
    """The name of what a hook does: ``what`` is start, end, or the identity of a finding of the verdict."""
    return f"hook {number}: {what}"


def notify_deed(number: str) -> str:
    """The name of the last message to a recipient."""
    return f"notify {number}"


class Promises:
    """The deeds of one run. A record that does not take a mark does not keep a deed from being done.

    ``known`` is False for the run of an older version, which marked nothing. ``doubts`` are sentences on what may have
    been done and is not done again.
    """

    def __init__(self, record: Record | None, text: str | None = "{}") -> None:
        deeds = parse_json(text)
        self.known = text is not None
        self._record = record
        self.doubts: list[str] = []
        self._deeds: dict[str, str] = {str(k): str(v) for k, v in deeds.items()} if isinstance(deeds, dict) else {}
        self._before: Mapping[str, str] = dict(self._deeds)

    @classmethod
    def recorded(cls, folder: Path, record: Record) -> Promises:
        """Those of the run in a folder, whose record is open for writing. Raises RecordError."""
        with RecordView.open(folder) as view:
            return cls(record, view.meta(META))

    def begin(self, deed: str) -> bool:
        """Mark it as begun; False if it was begun before, and is not to be begun again."""
        if deed in self._deeds:
            return False
        self._mark(deed, _BEGUN)
        return True

    def done(self, deed: str) -> None:
        """Mark it as done."""
        if self._deeds.get(deed) != _DONE:
            self._mark(deed, _DONE)

    def is_begun(self, deed: str) -> bool:
        """Whether it was begun, by this monitor or an earlier one."""
        return deed in self._deeds

    def is_done(self, deed: str) -> bool:
        """Whether it is marked as done."""
        return self._deeds.get(deed) == _DONE

    def in_doubt(self, deed: str) -> bool:
        """Whether a monitor that was killed had begun it, and nobody knows whether it was done."""
        return self._before.get(deed) == _BEGUN

    def _mark(self, deed: str, state: str) -> None:
        self._deeds[deed] = state
        if self._record is not None:
            with suppress(RecordError):
                self._record.set_meta(META, json.dumps(self._deeds, sort_keys=True))


def is_complete(metas: Mapping[str, str]) -> bool:
    """Whether a run has ended, and all that belongs to its end is done, by the texts of its record."""
    if not metas.get("ended_ns"):
        return False
    promises = Promises(None, metas.get(META))
    return promises.is_done(END) if promises.known else bool(metas.get("verdict"))
