"""Event: what happened on a target, with what was expected of it.

The class runs on Python 3.9, where a dataclass with slots can have no defaults: it has none of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)  # events are few: what slots would save does not matter
class Event:
    """Something with a begin and mostly an end.

    ``kind`` is a dotted word (``process.restart``, ``core.dump``, ``failover`` ...). ``target`` is empty for what
    concerns the whole run, and in the answer of a source, whose target the record adds. ``object`` is the canonical
    label text of what it happened to; empty for the target as a whole. ``detail`` carries what a person needs to find
    it again (pid, file, log line), all as text. ``expect`` is the intent of a planned event (``{"reboot": 1}``),
    ``deadline_ns`` the time by which it must be over; both are empty for what merely happened.
    """

    kind: str
    target: str
    object: str
    begin_ns: int
    end_ns: int | None
    detail: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, int] = field(default_factory=dict)
    deadline_ns: int | None = None
