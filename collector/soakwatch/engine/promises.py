"""What a run does once, however often its monitor is killed: each action is marked in its record.

An action is marked as begun before it and as done after it. If a killed monitor had begun it without marking it as
done, it may have happened: it is not repeated, and that is reported (at most once). What can be repeated without harm
(verdict, report files, sinks) is marked only when done, and repeated until then.
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
"""Meta key: the actions of a run as JSON, name to ``begun`` or ``done``."""
POLLED = "polled_ns"
"""Meta key: when polling ended (UTC ns); a monitor that resumes the run only has to do its end."""
REPORT, SINKS, END = "report files", "sinks", "end"
_BEGUN, _DONE = "begun", "done"


def hook_action(number: int, what: str) -> str:
    """Name of a hook's action: ``what`` is start, end, or the identity of a finding of the verdict."""
    return f"hook {number}: {what}"


def notify_action(number: str) -> str:
    """Name of the last message to a recipient."""
    return f"notify {number}"


class Promises:
    """The actions of one run. If a mark cannot be recorded, the action is done all the same.

    ``known`` is False if the record has no marks at all. ``doubts`` are sentences on actions that may have been done
    and are not repeated.
    """

    def __init__(self, record: Record | None, text: str | None = "{}") -> None:
        marks = parse_json(text)
        self.known = text is not None
        self._record = record
        self.doubts: list[str] = []
        self._actions: dict[str, str] = {str(k): str(v) for k, v in marks.items()} if isinstance(marks, dict) else {}
        self._before: Mapping[str, str] = dict(self._actions)

    @classmethod
    def recorded(cls, folder: Path, record: Record) -> Promises:
        """The actions of the run in a folder, whose record is open for writing. Raises RecordError."""
        with RecordView.open(folder) as view:
            return cls(record, view.meta(META))

    def begin(self, action: str) -> bool:
        """Marks it as begun; False if it was begun before and must not be begun again."""
        if action in self._actions:
            return False
        self._mark(action, _BEGUN)
        return True

    def done(self, action: str) -> None:
        """Marks it as done."""
        if self._actions.get(action) != _DONE:
            self._mark(action, _DONE)

    def is_begun(self, action: str) -> bool:
        """True if this or an earlier monitor began it."""
        return action in self._actions

    def is_done(self, action: str) -> bool:
        """True if it is marked as done."""
        return self._actions.get(action) == _DONE

    def in_doubt(self, action: str) -> bool:
        """True if a killed monitor had begun it and may have done it."""
        return self._before.get(action) == _BEGUN

    def _mark(self, action: str, state: str) -> None:
        self._actions[action] = state
        if self._record is not None:
            with suppress(RecordError):
                self._record.set_meta(META, json.dumps(self._actions, sort_keys=True))


def is_complete(metas: Mapping[str, str]) -> bool:
    """True if a run has ended and everything of its end is done; ``metas`` are those of its record."""
    if not metas.get("ended_ns"):
        return False
    promises = Promises(None, metas.get(META))
    return promises.is_done(END) if promises.known else bool(metas.get("verdict"))
