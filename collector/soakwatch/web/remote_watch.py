"""A run that is watched over HTTP: the state and the findings that its server tells, as displays see them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from soakwatch.core.errors import SoakwatchError
from soakwatch.record import finding_from_json
from soakwatch.runs.mark_event import moment
from soakwatch.runs.status import JUDGING, RunSnapshot, SourceStatus, Status
from soakwatch.runs.status_words import own_words, span
from soakwatch.runs.watching import LEAVES_IT
from soakwatch.web.client import RemoteRun
from soakwatch_agent.sample import PollOutcome
from soakwatch_rules.rule import Finding, Outcome

PATIENCE_S = 20.0
"""A server that died is started again: so long it is waited for."""
_OUTCOMES = {outcome.value: outcome for outcome in PollOutcome}
_BOOK_KEEPING = "phase."


class ServedRun:
    """A run by its server. The findings are asked for again when there was a judging since."""

    def __init__(self, run: RemoteRun, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self._judged: object = ""
        self._findings: tuple[Finding, ...] = ()
        self._last: tuple[Status, float] | None = None

    def read(self) -> RunSnapshot:
        """How it stands now; for a while as it was, when the server is away. Raises SoakwatchError."""
        try:
            look = self._asked()
        except SoakwatchError:
            if self._last is None:
                raise
            status, at_s = self._last
            gone_s = self._clock() - at_s
            if gone_s > PATIENCE_S:
                raise
            trouble = f"no answer for {span(gone_s)}: this is old"
            return RunSnapshot(replace(status, trouble=trouble), over=False)
        self._last = look.status, self._clock()
        return look

    def _asked(self) -> RunSnapshot:
        told = self._run.ask("GET", "state?known=")
        try:
            judged = cast("Mapping[str, object]", told["findings"])["judged"]
            if judged != self._judged:
                found = cast("list[object]", self._run.ask("GET", "findings")["findings"])
                self._findings = tuple(finding_from_json(json.dumps(one)) for one in found)
                self._judged = judged
            return _look(told, self._findings)
        except (AttributeError, KeyError, TypeError, ValueError, LookupError):
            raise SoakwatchError("what is said of the run is not understood: another version?") from None


def _look(told: Mapping[str, object], findings: tuple[Finding, ...]) -> RunSnapshot:
    standing, verdict = str(told["state"]), told.get("verdict")
    now_ns = moment(str(told["now"]))
    phases = cast("list[Mapping[str, object]]", told["phases"])
    phase, coming = cast("Mapping[str, object] | None", told["phase"]), told["next"]
    begun = sum(one["state"] != "planned" for one in phases)
    begin, judged = told.get("begin"), cast("Mapping[str, object]", told["findings"])["judged"]
    own = cast("Mapping[str, float | None]", told["self"])
    missed = own.get("missed")
    goes_on = standing in {"running", "waiting"}
    order = list(Outcome)
    judged_at_s = None
    if begin is not None and judged is not None:
        judged_at_s = (moment(str(judged)) - moment(str(begin))) * 1e-9
    status = Status(
        run=str(told["name"]),
        phase="" if phase is None else str(phase["name"]),
        elapsed_s=float(str(told["elapsed_s"])),
        left_s=float(str(told["left_s"])),
        sources=tuple(_source(one, now_ns) for one in cast("list[Mapping[str, object]]", told["sources"])),
        load=_load(cast("list[Mapping[str, object]]", told.get("load") or [])) if goes_on else {},
        findings=tuple(sorted(findings, key=lambda f: order.index(f.outcome))),
        judged_at_s=judged_at_s,
        events=_events(cast("Mapping[str, object]", told.get("shown") or {})),
        trouble=None,
        doing=JUDGING if standing == "ended" and verdict is None else "",
        standing=standing,
        place=f"{begun} of {len(phases)}" if phase is not None and len(phases) > 1 else "",
        coming=_coming(cast("Mapping[str, object] | None", coming)),
        own=own_words(
            own.get("rss_bytes"), own.get("lag_s"), None if missed is None else int(missed), own.get("disk_free_bytes")
        )
        if goes_on
        else "",
        keys=LEAVES_IT,
    )
    over = standing == "broken off" or (standing == "ended" and verdict is not None)
    return RunSnapshot(status, over, None if verdict is None else str(verdict), str(told.get("reason") or ""))


def _source(told: Mapping[str, object], now_ns: int) -> SourceStatus:
    counted = cast("Mapping[str, int]", told.get("outcomes") or {})
    outcomes = Counter({_OUTCOMES[word]: int(number) for word, number in counted.items() if word in _OUTCOMES})
    since = told.get("failing_since") if told["state"] in {"failing", "silent"} else None
    silent_s = None if since is None else max(0, now_ns - moment(str(since))) * 1e-9
    return SourceStatus(str(told["source"]), outcomes, silent_s)


def _load(told: list[Mapping[str, object]]) -> Mapping[tuple[str, str], float]:
    """The figures are folded already; the latency is the 99th percentile."""
    tails = {"load.latency": "quantile=p99"}
    return {
        (str(one["metric"]), f"{one['target']},{tails.get(str(one['metric']), '')}"): float(str(one["value"]))
        for one in told
    }


def _coming(told: Mapping[str, object] | None) -> str:
    if told is None or told["kind"] == "end":
        return ""
    return f"{told['kind']} {told['what']} in {span(float(str(told['in_s'])))}"


def _events(told: Mapping[str, object]) -> tuple[str, ...]:
    listed = cast("list[Mapping[str, object]]", told.get("told") or [])
    made = [
        " ".join([str(one["at"])[11:], *(str(one[key]) for key in ("kind", "target", "object") if one[key])])
        for one in listed
        if not str(one["kind"]).startswith(_BOOK_KEEPING)
    ]
    return tuple(made[:3])
