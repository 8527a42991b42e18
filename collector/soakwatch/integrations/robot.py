"""Robot Framework during a soak: keywords that report events to a run, and check its verdict.

::

    *** Settings ***
    Library    soakwatch.integrations.robot    last

    *** Test Cases ***
    Failover
        Begin Soak Event    failover    target=dut    expect=reboot=1    within=5m
        Reload The Active Unit
        End Soak Event      failover    target=dut    by=reload
        Soak Verdict Should Be    pass    inconclusive

The run is a folder, a name below ``runs``, ``last``, or the URL of a server; without one it is the run whose script
this is, or what SOAKWATCH_RUN says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from typing import ClassVar

from soakwatch.core.errors import SoakwatchError
from soakwatch.integrations.attach import attach
from soakwatch.record import StoredEvent
from soakwatch.runs.attached import RUN_VARIABLE, InterimVerdict, SoakRun, run_meant
from soakwatch.runs.mark_event import EventRefusedError, moment_text
from soakwatch_model.finding import Outcome

_WORDS = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.NOT_APPLICABLE)


class SoakEvents:
    """Reports events to a soak run, and checks its verdict.

    | Library | soakwatch.integrations.robot | last | # the newest run below runs |
    | Library | soakwatch.integrations.robot | http://127.0.0.1:8720 | token=env:SOAK_TOKEN |

    Every test has its own view: `Soak Verdict Should Be` is about the events that this test reported.
    """

    ROBOT_LIBRARY_SCOPE: ClassVar[str] = "TEST"
    ROBOT_LIBRARY_DOC_FORMAT: ClassVar[str] = "ROBOT"
    ROBOT_AUTO_KEYWORDS: ClassVar[bool] = True

    def __init__(
        self, run: str | None = None, token: str | None = None, runs: str = "runs", ca: str | None = None
    ) -> None:
        self._where = run or run_meant(os.environ), token, runs, ca
        self._known: SoakRun | None = None

    @property
    def ROBOT_LIBRARY_VERSION(self) -> str:  # noqa: N802 - the name is Robot's
        """The version of Soakwatch."""
        return metadata.version("soakwatch")

    def begin_soak_event(
        self,
        kind: str,
        target: str = "",
        object: str = "",  # noqa: A002
        expect: str | Mapping[str, int] = "",
        within: str = "",
        **labels: str,
    ) -> str:
        """Begins an event of ``kind``, a word such as ``failover``; `End Soak Event` ends it. Returns its begin.

        ``expect`` is what it must cause, and may (``reboot=1``; several with commas), ``within`` how long after its
        begin all must be over (``5m``). Other named arguments are labels.

        | Begin Soak Event | upgrade | target=dut | expect=reboot=1 | within=10m | ticket=4711 |
        """
        stored = self._run().begin(
            kind, target=target, object=object, expect=_counts(expect), within=within or None, labels=_texts(labels)
        )
        return moment_text(stored.event.begin_ns)

    def end_soak_event(self, kind: str, target: str = "", object: str = "", **labels: str) -> str:  # noqa: A002
        """Ends the open event of ``kind`` (and of target and object, if these were given). Returns its end.

        | End Soak Event | upgrade | target=dut | result=${STATUS} |
        """
        stored = self._run().end(kind, target=target, object=object, labels=_texts(labels))
        return moment_text(stored.event.end_ns or stored.event.begin_ns)

    def mark_soak_event(
        self,
        kind: str,
        target: str = "",
        object: str = "",  # noqa: A002
        at: str = "",
        until: str = "",
        expect: str | Mapping[str, int] = "",
        within: str = "",
        **labels: str,
    ) -> str:
        """Marks a moment (now, or ``at``: ISO 8601 with a zone), or with ``until`` a period that is over.

        Returns the begin.

        | Mark Soak Event | config | target=dut | ticket=4711 |
        """
        stored = self._run().mark(
            kind,
            at or None,
            until or None,
            target=target,
            object=object,
            expect=_counts(expect),
            within=within or None,
            labels=_texts(labels),
        )
        return moment_text(stored.event.begin_ns)

    def soak_verdict_should_be(self, *outcomes: str, scope: str = "test") -> str:
        """Fails unless the verdict on the device is one of the given outcomes: pass, warn, inconclusive, fail.

        It is about the events of this test, from the first begin to the last end; with ``scope=run``, or if the test
        reported none, about the run so far. A run cannot pass before its planned end. Returns the reason.

        | Soak Verdict Should Be | pass | warn |
        | Soak Verdict Should Be | inconclusive | scope=run |
        """
        wanted = [outcome.strip().lower() for outcome in outcomes]
        wrong = [outcome for outcome in wanted if outcome not in _WORDS]
        if wrong or not wanted:
            raise EventRefusedError(
                f"invalid verdict {wrong[0] if wrong else ''!r}: expected one or more of {', '.join(_WORDS)}"
            )
        if scope not in {"test", "run"}:
            raise EventRefusedError(f"invalid scope {scope!r}: expected 'test' or 'run'")
        verdict = self._verdict(scope)
        if verdict.outcome.value not in wanted:
            raise AssertionError(
                f"the soak verdict is {verdict.outcome.value}, not {' or '.join(wanted)}: {verdict.reason}"
            )
        return verdict.reason

    def _verdict(self, scope: str) -> InterimVerdict:
        run = self._run()
        events: list[StoredEvent] = run.reported
        if scope == "run" or not events:
            return run.verdict()
        end_ns = max(stored.event.end_ns or stored.event.begin_ns for stored in events)
        return run.verdict(end_ns).during(min(stored.event.begin_ns for stored in events), end_ns)

    def _run(self) -> SoakRun:
        if self._known is None:
            run, token, runs, ca = self._where
            if not run:
                raise SoakwatchError(f"no run given: pass it to the library, or export {RUN_VARIABLE}")
            self._known = attach(run, token=token, ca=ca, runs=runs)
        return self._known


robot = SoakEvents
"""Robot Framework loads the class named like its module."""


def _counts(text: str | Mapping[str, int]) -> dict[str, int]:
    if not isinstance(text, str):
        return {str(key): int(count) for key, count in text.items()}
    counts = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, count = (word.strip() for word in part.partition("="))
        if not (key and count.isascii() and count.isdecimal() and len(count) < 10):
            raise EventRefusedError(f"expect: {part!r} is not KIND=N, such as reboot=1")
        counts[key] = int(count)
    return counts


def _texts(labels: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in labels.items()}
