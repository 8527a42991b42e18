"""What the agent polls and how often, as the collector asked: checked, and saved for the next start."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Optional, Tuple

from soakwatch_agent.context import SECOND, HostContext, Watch, watch
from soakwatch_agent.framing import FrameError, Object, object_of, whole, words
from soakwatch_agent.host import Host, probe_names
from soakwatch_agent.service import read_state, write_state

_FILE = "settings.json"
_MIN_INTERVAL_NS, _MAX_INTERVAL_NS = SECOND // 10, 86400 * SECOND


@dataclass(frozen=True)
class Settings:
    """Polls are due at ``phase_ns + k * interval_ns`` of the agent's clock; the other fields are what is polled."""

    __slots__ = ("core_folders", "interfaces", "interval_ns", "phase_ns", "probes", "watches")
    interval_ns: int
    phase_ns: int
    watches: Tuple[Watch, ...]
    interfaces: Optional[Tuple[str, ...]]
    core_folders: Tuple[str, ...]
    probes: Optional[Tuple[str, ...]]

    @property
    def what(self) -> Tuple[object, ...]:
        """What is polled, regardless of when."""
        return (self.watches, self.interfaces, self.core_folders, self.probes)

    def due_ns(self, after_ns: int) -> int:
        """The first due time after ``after_ns``."""
        return after_ns + self.interval_ns - (after_ns - self.phase_ns) % self.interval_ns

    def host(self, root: str = "/") -> Host:
        """The probes, which open at their first poll. Raises ValueError for an unknown probe."""
        return Host(HostContext(root, self.watches, self.interfaces, self.core_folders), self.probes)


def settings_of(body: Object) -> Settings:
    """Parses the settings of a question. Raises FrameError, in a sentence that names what is wrong."""
    interval_ns = whole(body, "interval_ns")
    if not _MIN_INTERVAL_NS <= interval_ns <= _MAX_INTERVAL_NS:
        raise FrameError("the interval is out of range: 100ms to 24h")
    watches = []
    rows = body.get("processes", [])
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, list) or len(row) != 3:
            raise FrameError("a watched process must be a list of name, how and what")
        name, how, what = row
        if not (isinstance(name, str) and isinstance(how, str) and isinstance(what, str)):
            raise FrameError("a watched process must be a list of three texts")
        try:
            watches.append(watch(name, how, what))
        except ValueError as error:
            raise FrameError(str(error)) from None
    probes = words(body, "probes")
    for probe in probes or ():
        if probe not in probe_names():
            raise FrameError(f"there is no probe {probe!r}: there are {', '.join(sorted(probe_names()))}")
    return Settings(
        interval_ns,
        whole(body, "phase_ns", 0) % interval_ns,
        tuple(watches),
        words(body, "interfaces"),
        words(body, "core_folders") or (),
        probes,
    )


def body_of(settings: Settings) -> Object:
    """The inverse of ``settings_of``."""
    return {
        "interval_ns": settings.interval_ns,
        "phase_ns": settings.phase_ns,
        "processes": [[each.name, each.how, each.what] for each in settings.watches],
        "interfaces": None if settings.interfaces is None else list(settings.interfaces),
        "core_folders": list(settings.core_folders),
        "probes": None if settings.probes is None else list(settings.probes),
    }


def load_settings(folder: str) -> Optional[Settings]:
    """The saved settings, so that a restarted agent goes on polling; None if there are none."""
    try:
        return settings_of(object_of(read_state(folder, _FILE)))
    except (OSError, FrameError):
        return None


def save_settings(folder: str, settings: Settings) -> None:
    """Saves the settings in the agent's folder. Raises OSError."""
    write_state(folder, _FILE, body_of(settings))


def delete_settings(folder: str) -> None:
    """Deletes the saved settings, so that the next start does not poll. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _FILE))  # noqa: PTH108
