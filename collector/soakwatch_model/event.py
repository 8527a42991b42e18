"""Event: what happened on a target, with what was expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """Something with a begin and mostly an end. ``expect`` is the intent of a planned event (``{"reboot": 1}``),
    ``deadline_ns`` the time by which it must be over; both are empty for what merely happened."""

    kind: str
    target: str
    object: str
    begin_ns: int
    end_ns: int | None
    detail: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, int] = field(default_factory=dict)
    deadline_ns: int | None = None
