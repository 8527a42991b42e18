"""The display of a run: a panel redrawn in place, or plain lines without a terminal.

Every display shows a ``Status``, either of a run in this process or of one followed through its record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from soakwatch.cli.display.live_region import Frame, drawable, framed
from soakwatch.cli.display.panel import RunPicture
from soakwatch.core.plain_names import plain_name
from soakwatch.core.tables import harmless
from soakwatch.core.terminal import encodable
from soakwatch.judge.rates import Rate
from soakwatch.runs.run_status import SourceStatus, Status
from soakwatch.runs.status_words import alarms, finding_words, load_words, span, totals
from soakwatch_model.finding import Finding

LINE_EVERY_S = 60.0
LONG_RUN_LINE_EVERY_S = 600.0
_SHORT_RUN_S = 1800.0
_MAX_DEVICES = 4
DRAW_EVERY_S = 1.0
_LOOKS = 720  # of a display of lines in a whole run: those of an hour come at most 5 s late
_LONGEST_REST_S = 5.0


class Alarms:
    """Failures and warnings reported so far, and those that a later evaluation withdrew."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, ...], Finding] = {}
        self._judged_at_s: float | None = None
        self.withdrawn: dict[tuple[str, ...], Finding] = {}

    def update(self, status: Status) -> tuple[list[Finding], list[Finding]]:
        """The new alarms (or with a new outcome), and those that a newer evaluation withdrew."""
        now = {f.name: f for f in alarms(status)}
        known = self._reported
        new = [f for key, f in now.items() if key not in known or known[key].outcome is not f.outcome]
        gone = {key: f for key, f in known.items() if key not in now and status.judged_at_s != self._judged_at_s}
        self._judged_at_s = status.judged_at_s
        self._reported = {key: f for key, f in known.items() if key not in gone} | now
        self.withdrawn = {key: f for key, f in {**self.withdrawn, **gone}.items() if key not in now}
        return new, list(gone.values())


class Silences:
    """How long each source has not answered, derived from its poll counts, if the status does not tell."""

    def __init__(self) -> None:
        self._answered: dict[str, tuple[int, int, float]] = {}  # got and due at the last answer, and its time in s

    def completed(self, status: Status) -> Status:
        """The status with the silence of each source filled in."""
        return replace(status, sources=tuple(self._with_silence(s, status.elapsed_s) for s in status.sources))

    def _with_silence(self, source: SourceStatus, now_s: float) -> SourceStatus:
        got, due, since_s = self._answered.get(source.label, (-1, 0, now_s))
        if source.got != got:
            self._answered[source.label] = source.got, source.due, now_s
            return source
        if source.silent_s is not None or source.due == due:
            return source
        return replace(source, silent_s=max(0.0, now_s - since_s))


class Lines:
    """Plain lines: at the start, at each change of phase, findings or sources, and periodically."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: tuple[str | None, ...] = ()
        self._alarms, self._silences = Alarms(), Silences()
        self._silent: frozenset[str] = frozenset()
        self._growing: dict[tuple[str, str, str], Rate] = {}
        self._steps: frozenset[str] = frozenset()
        self._next_s = 0.0

    def in_full(self, status: Status) -> bool:
        """Whether ``show`` will show all of a status: else its figures, the monitor's own and ``behind`` are for
        nobody."""
        return self._standing_of(status) != self._printed or status.elapsed_s >= self._next_s

    def rest_s(self, status: Status) -> float:
        """Seconds until the next status is wanted: a long run, of which few lines are printed, is looked at less
        often."""
        rest_s = min((status.elapsed_s + status.left_s) / _LOOKS, self._next_s - status.elapsed_s, _LONGEST_REST_S)
        return max(rest_s, DRAW_EVERY_S)

    @staticmethod
    def _standing_of(status: Status) -> tuple[str | None, ...]:
        return status.standing, status.phase, status.doing, status.trouble

    def show(self, status: Status) -> None:
        """Print what has changed."""
        status = self._silences.completed(status)
        now = self._standing_of(status)
        new, gone = self._alarms.update(status)
        for finding in new:
            self._print(f"{_clock(status)} {finding_words(finding)}")
        for finding in gone:
            self._print(f"{_clock(status)} WITHDRAWN {finding_words(finding)}")
        self._print_rates(status)
        self._print_silences(status)
        for step in status.clock_steps:
            if step not in self._steps:
                self._print(f"{_clock(status)} {step} UTC; the run keeps its own time")
        self._steps |= set(status.clock_steps)
        if now != self._printed or status.elapsed_s >= self._next_s:
            self._printed = now
            every = LINE_EVERY_S if status.elapsed_s + status.left_s <= _SHORT_RUN_S else LONG_RUN_LINE_EVERY_S
            self._next_s = (status.elapsed_s // every + 1) * every
            self._print(f"{_clock(status)} " + "; ".join(_parts(status)))

    def _print_rates(self, status: Status) -> None:
        """Print each growth rate once, and when it is withdrawn."""
        now = {(rate.target, rate.metric, rate.object): rate for rate in status.rates}
        for rate in (rate for key, rate in now.items() if key not in self._growing):
            self._print(f"{_clock(status)} {rate.words}")
        for key, rate in self._growing.items():
            if key not in now and status.standing == "running":
                self._print(f"{_clock(status)} {rate.target}: {plain_name(rate.metric, rate.object)} no longer grows")
        self._growing = now

    def _print_silences(self, status: Status) -> None:
        """Print each source that stops or resumes answering."""
        now = frozenset(source.label for source in status.sources if source.silent_s is not None)
        for label in sorted(now - self._silent):
            self._print(f"{_clock(status)} source {label} does not answer")
        for label in sorted(self._silent - now):
            self._print(f"{_clock(status)} source {label} answers again")
        self._silent = now

    def _print(self, text: str) -> None:
        line = encodable(harmless(text), self._console.encoding)
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


class Panel:
    """The status panel on a terminal."""

    def __init__(self, frame: Frame, encoding: str) -> None:
        self._frame, self._encoding = frame, encoding
        self._alarms, self._silences = Alarms(), Silences()

    def in_full(self, status: Status) -> bool:  # noqa: ARG002 - as ``Lines``
        """Always true: the panel has room for everything."""
        return True

    def rest_s(self, status: Status) -> float:  # noqa: ARG002 - as ``Lines``
        """Seconds until it is drawn again."""
        return DRAW_EVERY_S

    def show(self, status: Status) -> None:
        """Redraw the panel. Raises OSError if the terminal is gone."""
        self._alarms.update(status)
        withdrawn = tuple(self._alarms.withdrawn.values())
        self._frame.draw(RunPicture(self._silences.completed(status), withdrawn, self._encoding))


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Lines | Panel]:
    """The display for a console: a panel on a terminal, else plain lines."""
    if not drawable(console):
        yield Lines(console)
        return
    with framed(console) as frame:
        yield Panel(frame, console.encoding)


def panel(status: Status, withdrawn: tuple[Finding, ...] = (), encoding: str = "utf-8") -> RunPicture:
    """The panel for one status; ``withdrawn`` are alarms that did not last."""
    return RunPicture(status, withdrawn, encoding)


def _parts(status: Status) -> list[str]:
    due, got, failed = totals(status)
    phase = f"phase {status.phase}" if status.phase else status.standing
    parts = [phase + (f" ({status.phase_position})" if status.phase_position else "")]
    if status.standing in {"running", "waiting"}:
        parts.append(f"{span(status.left_s)} left")
    parts += [f"polls {due} due, {got} got, {failed} failed", load_words(status)]
    parts += status.figures[:_MAX_DEVICES]
    parts += [status.doing, *status.behind, f"TROUBLE: {status.trouble}" if status.trouble else ""]
    return [part for part in parts if part]


def _clock(status: Status) -> str:
    return f"[{span(status.elapsed_s)}]"
