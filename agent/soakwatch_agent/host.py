"""Polls all probes of a machine at once."""

from __future__ import annotations

import importlib
import pkgutil
import time
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from soakwatch_agent import probes
from soakwatch_agent.context import HostContext, Probe
from soakwatch_model.event import Event
from soakwatch_model.metric_queries import brought_by
from soakwatch_model.sample import Answer, Fault, Sample


@dataclass(frozen=True)
class Source:
    """A probe module: its name, the first line of its docstring, and the metrics it reads."""

    __slots__ = ("about", "metrics", "name", "open")
    name: str
    about: str
    metrics: Tuple[str, ...]
    open: Callable[[HostContext], Probe]


def probe_names() -> Tuple[str, ...]:
    """All probes' names; ``process`` comes first, because others use the processes it finds."""
    names = sorted(module.name for module in pkgutil.iter_modules(probes.__path__))
    return tuple(sorted(names, key=lambda name: name != "process"))


def source(name: str) -> Source:
    """The probe of a name. Raises ValueError, in one sentence, if there is none."""
    if name not in probe_names():
        raise ValueError(f"there is no probe {name!r}: there are {', '.join(sorted(probe_names()))}")
    module = importlib.import_module(f"soakwatch_agent.probes.{name}")
    first = (module.__doc__ or "").partition("\n")[0]
    return Source(name, first, brought_by(name), module.open_probe)


def chosen_probes(names: Optional[Iterable[str]]) -> Optional[Tuple[str, ...]]:
    """The probes that a list means: those it names, or all but those it names with a minus; None means all.

    Raises ValueError, in one sentence, for a name that no probe has.

    >>> "ledger" in (chosen_probes(["-ledger"]) or ()), chosen_probes(["cpu", "memory", "-memory"]), chosen_probes(None)
    (False, ('cpu',), None)
    """
    if names is None:
        return None
    listed = list(names)
    for name in listed:
        source(name.removeprefix("-"))
    named = [name for name in listed if not name.startswith("-")]
    return tuple(name for name in named or probe_names() if f"-{name}" not in listed)


class Host:
    """All probes of a host. If one fails, its error becomes a fault of its metrics and the others go on."""

    def __init__(self, context: HostContext, only: Optional[Iterable[str]] = None) -> None:
        """``only``: see ``chosen_probes``, whose ValueError it raises."""
        wanted = chosen_probes(only)
        self._sources = [source(name) for name in probe_names() if wanted is None or name in wanted]
        self._context = context
        self._open: Dict[str, Probe] = {}

    def poll(self, now_ns: int) -> Answer:
        """One poll of all probes at steady time ``now_ns``. Never raises for a failing probe."""
        samples: List[Sample] = []
        events: List[Event] = []
        faults: List[Fault] = []
        for each in self._sources:
            try:
                probe = self._open.get(each.name)
                if probe is None:
                    probe = self._open[each.name] = each.open(self._context)
                answer = probe.read(now_ns)
            except Exception as error:  # noqa: BLE001 - whatever a device's files hold, the others must go on
                denied = self._context.denied(error) if isinstance(error, OSError) else ""
                text = f"the probe {each.name} failed: {type(error).__name__}: {error}"
                text = f"{denied} cannot be read: permission denied" if denied else text
                faults += [Fault(metric, "", text) for metric in each.metrics]
                continue
            samples += answer.samples
            events += answer.events
            faults += answer.faults
        return Answer(tuple(samples), tuple(events), tuple(faults))

    def close(self) -> None:
        """Closes every probe."""
        for probe in self._open.values():
            probe.close()
        self._open.clear()


def steady() -> Callable[[], int]:
    """A clock of UTC nanoseconds: today's wall clock, carried on by CLOCK_BOOTTIME, which never steps."""
    anchor_ns, begun = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return lambda: anchor_ns + time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begun
