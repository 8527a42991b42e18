"""Follows a run over HTTP: the state and findings that its server reports."""

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
from soakwatch.runs.run_status import JUDGING, RunSnapshot, SourceStatus, Status
from soakwatch.runs.status_words import own_words, span
from soakwatch.runs.watching import LEAVES_IT, what_and_where
from soakwatch.web.client import RemoteRun
from soakwatch_model.finding import Finding
from soakwatch_model.sample import PollOutcome

MAX_OUTAGE_S = 20.0
"""Seconds without an answer that are tolerated, as a server that died is restarted."""
_OUTCOMES = {outcome.value: outcome for outcome in PollOutcome}
_INTERNAL_PREFIX = "phase."


class ServedRun:
    """A run read from its server. Findings are fetched again after each evaluation."""

    def __init__(self, run: RemoteRun, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._clock = run, clock
        self._judged: object = ""
        self._findings: tuple[Finding, ...] = ()
        self._last: tuple[Status, float] | None = None

    def read(self) -> RunSnapshot:
        """The current state; for ``MAX_OUTAGE_S`` the last known one if the server does not answer. Raises
        SoakwatchError."""
        try:
            snapshot = self._fetched()
        except SoakwatchError:
            if self._last is None:
                raise
            status, read_s = self._last
            gone_s = self._clock() - read_s
            if gone_s > MAX_OUTAGE_S:
                raise
            trouble = f"no answer for {span(gone_s)}; showing the last known state"
            return RunSnapshot(replace(status, trouble=trouble), over=False)
        self._last = snapshot.status, self._clock()
        return snapshot

    def _fetched(self) -> RunSnapshot:
        state = self._run.ask("GET", "state?known=&figures=")
        try:
            judged = cast("Mapping[str, object]", state["findings"])["judged"]
            if judged != self._judged:
                findings = cast("list[object]", self._run.ask("GET", "findings")["findings"])
                self._findings = tuple(finding_from_json(json.dumps(finding)) for finding in findings)
                self._judged = judged
            return _snapshot(state, self._findings)
        except (AttributeError, KeyError, TypeError, ValueError, LookupError):
            raise SoakwatchError(
                "the server's answer is not understood: check that it has the same version of Soakwatch"
            ) from None


def _snapshot(data: Mapping[str, object], findings: tuple[Finding, ...]) -> RunSnapshot:
    standing, verdict = str(data["state"]), data.get("verdict")
    now_ns = moment(str(data["now"]))
    phases = cast("list[Mapping[str, object]]", data["phases"])
    phase, coming = cast("Mapping[str, object] | None", data["phase"]), data["next"]
    begun = sum(entry["state"] != "planned" for entry in phases)
    begin, judged = data.get("begin"), cast("Mapping[str, object]", data["findings"])["judged"]
    own = cast("Mapping[str, float | None]", data["self"])
    missed = own.get("missed")
    goes_on = standing in {"running", "waiting"}
    judged_at_s = None
    if begin is not None and judged is not None:
        judged_at_s = (moment(str(judged)) - moment(str(begin))) * 1e-9
    status = Status(
        run=str(data["name"]),
        phase="" if phase is None else str(phase["name"]),
        elapsed_s=float(str(data["elapsed_s"])),
        left_s=float(str(data["left_s"])),
        sources=tuple(_source(entry, now_ns) for entry in cast("list[Mapping[str, object]]", data["sources"])),
        load=_load(cast("list[Mapping[str, object]]", data.get("load") or [])) if goes_on else {},
        findings=tuple(sorted(findings, key=lambda f: f.outcome.rank)),
        judged_at_s=judged_at_s,
        events=_events(cast("Mapping[str, object]", data.get("shown") or {})),
        trouble=None,
        doing=JUDGING if standing == "ended" and verdict is None else "",
        standing=standing,
        phase_position=f"{begun} of {len(phases)}" if phase is not None and len(phases) > 1 else "",
        coming=_coming(cast("Mapping[str, object] | None", coming)),
        own=own_words(
            own.get("rss_bytes"), own.get("lag_s"), None if missed is None else int(missed), own.get("disk_free_bytes")
        )
        if goes_on
        else "",
        keys=LEAVES_IT,
        figures=tuple(str(line) for line in cast("list[object]", data.get("devices") or [])),
    )
    over = standing == "broken off" or (standing == "ended" and verdict is not None)
    return RunSnapshot(status, over, None if verdict is None else str(verdict), str(data.get("reason") or ""))


def _source(data: Mapping[str, object], now_ns: int) -> SourceStatus:
    counted = cast("Mapping[str, int]", data.get("outcomes") or {})
    outcomes = Counter({_OUTCOMES[word]: int(number) for word, number in counted.items() if word in _OUTCOMES})
    since = data.get("failing_since") if data["state"] in {"failing", "silent"} else None
    silent_s = None if since is None else max(0, now_ns - moment(str(since))) * 1e-9
    return SourceStatus(str(data["source"]), outcomes, silent_s)


def _load(figures: list[Mapping[str, object]]) -> Mapping[tuple[str, str], float]:
    """The load by metric and object; the server has folded the objects, and latency is its p99."""
    tails = {"load.latency": "quantile=p99"}
    return {
        (str(figure["metric"]), f"{figure['target']},{tails.get(str(figure['metric']), '')}"): float(
            str(figure["value"])
        )
        for figure in figures
    }


def _coming(coming: Mapping[str, object] | None) -> str:
    if coming is None or coming["kind"] == "end":
        return ""
    return f"{coming['kind']} {coming['what']} in {span(float(str(coming['in_s'])))}"


def _events(shown: Mapping[str, object]) -> tuple[str, ...]:
    listed = cast("list[Mapping[str, object]]", shown.get("told") or [])
    lines = [
        f"{str(event['at'])[11:]} {what_and_where(*(str(event[key] or '') for key in ('kind', 'target', 'object')))}"
        for event in listed
        if not str(event["kind"]).startswith(_INTERNAL_PREFIX)
    ]
    return tuple(lines[:3])
