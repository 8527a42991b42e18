"""A run that goes on as its test tells it to, served as a real one: what its page shows is known to the reading."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from tests.browser.records import SECOND

from soakwatch.engine.finish import judged
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.report.files import write_reports
from soakwatch.report.rendering import Rendering
from soakwatch.web.access import Token, derived, one_time_code
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window
from soakwatch_testing.served import ServedRun, serve_run

DUT, GENERATOR = "fw-7", "tg"
MEMORY = object_text(process="httpd", instance=0)
PLAN = """\
name: going
phases: [{soak: 30h}]
targets:
  fw-7: {role: dut, sources: [{local: {interval: 1s}}]}
  tg: {role: generator, sources: [{command: {interval: 1s, run: [load]}}]}
"""
_GOOD_S = 600.0


class Going:
    """A run that began ``before_s`` seconds ago; each second of it is written when ``go_on`` says so.

    Its clock stands in between, so that nothing on its page is older or newer than what the test wrote.
    """

    def __init__(self, folder: Path, before_s: int, names: Iterable[str] = ()) -> None:
        self.folder, self.names = folder, tuple(names)
        self.begin_ns = (time.time_ns() // SECOND - before_s) * SECOND
        self.seconds = 0
        self._noise = np.random.default_rng(5)
        self.record = Record.create(folder)
        self.record.set_meta("run", "going")
        self.record.set_meta("plan", PLAN)
        self.record.set_meta("start_ns", str(self.begin_ns))
        self.record.target(DUT, "dut")
        self.record.target(GENERATOR, "generator")
        self._device = self.record.source(DUT, "local", "local", SECOND, required=True).id
        self._load = self.record.source(GENERATOR, "command", "command", SECOND, required=True).id
        self.record.begin_phase("soak", self.begin_ns)
        self.go_on(before_s)
        self.token = Token("a-token-of-a-test-0123456789")
        self._kept = folder.with_suffix(".token")
        self._kept.write_text("a-token-of-a-test-0123456789", encoding="ascii")
        self._kept.chmod(0o600)
        self.served = self._serve("127.0.0.1:0")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.served.close()
        self.record.close()

    def fall_silent(self) -> None:
        """End its server, as if the network were gone."""
        self.served.close()

    def speak_again(self) -> None:
        """Serve it at the same address."""
        self.served = self._serve(self.served.url.removeprefix("http://"))

    def _serve(self, listen: str) -> ServedRun:
        return serve_run(WebPlan(listen=listen, token=f"file:{self._kept}"), self.folder, self.now_ns)

    def now_ns(self) -> int:
        """The clock of the run."""
        return self.begin_ns + self.seconds * SECOND

    def go_on(self, seconds: int) -> None:
        """Write so many seconds more."""
        polls = []
        for _ in range(seconds):
            now, elapsed_s = self.now_ns(), self.seconds
            named = (object_text(process=name, instance=0) for name in self.names)
            samples = (
                Sample("process.memory.usage", MEMORY, 40.0 * 2**20 + 2**15 * elapsed_s, now),
                Sample("system.cpu.utilization", "", float(self._noise.uniform(0.1, 0.2)), now),
                Sample("queue.depth", object_text(queue="tx0"), float(elapsed_s % 40), now),
                *(Sample("process.memory.usage", name, (50.0 + n) * 2**20, now) for n, name in enumerate(named)),
            )
            rate = (Sample("load.request.rate", "", 40.0 + elapsed_s % 7, now),)
            polls.append(Poll(self._device, now, now, 9, PollOutcome.OK, None, Answer(samples, (), ())))
            polls.append(Poll(self._load, now, now, 9, PollOutcome.OK, None, Answer(rate, (), ())))
            self.seconds += 1
        for start in range(0, len(polls), 600):
            self.record.put(polls[start : start + 600])

    def judge(self, *findings: Finding) -> None:
        """What the live judge says now."""
        self.record.put_findings(findings, live=True, judged_ns=self.now_ns())

    def leak(self, outcome: Outcome = Outcome.WARN, **changed: object) -> Finding:
        """A finding on the process that leaks, with a forecast."""
        soon = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)
        window = Window(self.begin_ns, self.now_ns())
        finding = Finding(
            "memory_growth",
            1,
            outcome,
            DUT,
            "process.memory.usage",
            MEMORY,
            window,
            "memory grows by less than 5 %",
            "it grows by 112 MiB/h",
            600,
            measured=112.0 * 2**20,
            limit=5.0 * 2**20,
            unit="By",
            forecast=soon,
        )
        return replace(finding, **changed)  # type: ignore[arg-type] # what the caller changes

    def end(self) -> None:
        """End it as a run ends: judged, with its report."""
        self.record.end_phase(self.now_ns())
        self.record.set_meta("ended_ns", str(self.now_ns()))
        verdict = judged(self.folder, self.record, self.now_ns())
        self.record.finish()
        with RecordView.open(self.folder) as view:
            assert write_reports(Rendering(view, verdict), self.folder) == ()

    def events(self, kind: str) -> list[Event]:
        """Events of a kind in its record."""
        with RecordView.open(self.folder) as view:
            return [stored.event for stored in view.events() if stored.event.kind == kind]

    def link(self, *, view_only: bool = False) -> str:
        """What ``soakwatch open`` prints: a link that acts and works once, or one that only views."""
        if view_only:
            return f"{self.served.url}/view/{derived(self.token, 'view')}"
        return f"{self.served.url}/enter/{one_time_code(self.token, time.time() + _GOOD_S)}"
