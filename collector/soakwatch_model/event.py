"""Event: what happened on a target, and what was expected.

It runs on Python 3.9, where a dataclass with slots cannot have defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)  # no slots: events are few
class Event:
    """Something with a begin and usually an end.

    ``kind`` is a dotted word (``process.restart``, ``core.dump``, ``failover`` ...). ``target`` is empty if it concerns
    the whole run, and in a source's answer, where the record adds it. ``object`` is the canonical label text of what it
    happened to; empty for the target itself. ``detail`` is text that helps a person find it again (pid, file, log
    line). ``expect`` is what a planned event should cause (``{"reboot": 1}``), ``deadline_ns`` when that must be over;
    both are empty for other events.
    """

    kind: str
    target: str
    object: str
    begin_ns: int
    end_ns: int | None
    detail: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, int] = field(default_factory=dict)
    deadline_ns: int | None = None
