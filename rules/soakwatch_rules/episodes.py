"""Episodes: stretches of stress, the calm before them, and the time after in which levels should return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.window import Phase, Window
from soakwatch_rules.load.offered import phases_joined

_STRESS: Final = frozenset({"stress", "spike"})
_CALM: Final = frozenset({"baseline", "soak", "recovery"})


@dataclass(frozen=True, slots=True)
class Episode:
    """One stress: its ``name`` and window, stretches ``before`` it to compare with (best first, may be empty), and the
    time ``after`` it (may be empty)."""

    name: str
    stress: Window
    before: tuple[Window, ...]
    after: Window


def episodes(case: Case, look_ns: int, calm_ns: int) -> tuple[Episode, ...]:
    """Stress and spike phases (adjacent ones, and a ramp between them, are one), and finished events of kinds failover,
    switchover, upgrade, stress and spike outside of them, in time order. Adjacent phases of one name are one: a
    recovery with two levels of load is one recovery.

    Before: the calm phase that ends where the first episode begins (for a soak its last ``calm_ns``), then the baseline
    phase. All episodes share these, so what each leaves behind adds up. After: to the end of a recovery phase that
    follows, else ``look_ns``; never into the next episode, a ramp or a cooldown.
    """
    phases = phases_joined(case.phases)
    spans = _phase_spans(phases)
    inside = [window for _, window in spans]
    kinds = {kind for kind in {event.kind for event in case.events} if event_kind(kind).stress}
    for event in sorted((e for e in case.events if e.kind in kinds), key=lambda e: (e.begin_ns, e.kind)):
        window = _event_span(event, case)
        if window is not None and not any(w.begin_ns <= window.begin_ns <= w.end_ns for w in inside):
            spans.append((event.kind, window))
            inside.append(window)
    spans.sort(key=lambda s: s[1].begin_ns)
    if not spans:
        return ()
    before = _before(phases, spans[0][1], case.window, calm_ns)
    begins = [window.begin_ns for _, window in spans[1:]] + [case.window.end_ns]
    found_episodes = []
    for (name, stress), following in zip(spans, begins, strict=True):
        end_ns = _until(phases, stress.end_ns, min(following, case.window.end_ns), look_ns)
        found_episodes.append(Episode(name, stress, before, Window(stress.end_ns, max(end_ns, stress.end_ns))))
    return tuple(found_episodes)


def _phase_spans(phases: Sequence[Phase]) -> list[tuple[str, Window]]:
    spans: list[tuple[str, Window]] = []
    joins = False
    for phase in phases:
        if phase.name in _STRESS:
            if spans and joins:
                name, first = spans[-1]
                spans[-1] = (name, Window(first.begin_ns, max(first.end_ns, phase.window.end_ns)))
            else:
                spans.append((phase.name, phase.window))
            joins = True
        elif phase.name != "ramp":
            joins = False
    return spans


def _event_span(event: Event, case: Case) -> Window | None:
    end_ns = event.end_ns
    if end_ns is None or end_ns < event.begin_ns:
        return None
    inside = case.window.begin_ns < event.begin_ns and end_ns < case.window.end_ns
    return Window(event.begin_ns, end_ns) if inside else None


def _before(phases: Sequence[Phase], stress: Window, whole: Window, calm_ns: int) -> tuple[Window, ...]:
    windows = []
    for phase in reversed(phases):
        if phase.window.begin_ns >= stress.begin_ns:
            continue
        if phase.name in _CALM:
            end_ns = min(phase.window.end_ns, stress.begin_ns)
            begin_ns = phase.window.begin_ns
            windows.append(Window(begin_ns if phase.name == "baseline" else max(begin_ns, end_ns - calm_ns), end_ns))
            break
        if phase.name != "ramp":
            break
    windows += [p.window for p in phases if p.name == "baseline" and p.window.end_ns <= stress.begin_ns]
    if not phases:
        windows.append(Window(max(whole.begin_ns, stress.begin_ns - calm_ns), stress.begin_ns))
    return tuple(dict.fromkeys(windows))


def _until(phases: Sequence[Phase], begin_ns: int, most_ns: int, look_ns: int) -> int:
    """The end of the time after an episode: that of a recovery phase, else ``look_ns`` later."""
    following = [p for p in phases if p.window.end_ns > begin_ns and p.window.begin_ns < most_ns]
    end_ns = most_ns
    recovery = None
    for phase in following:
        if phase.name not in _CALM:
            if phase.window.begin_ns >= begin_ns:
                end_ns = min(end_ns, phase.window.begin_ns)
                break
        elif phase.name == "recovery" and recovery is None:
            recovery = phase.window.end_ns
    return min(end_ns, begin_ns + look_ns if recovery is None else recovery)
