"""Robot Framework beside a soak: keywords that tell a run of what a test does, and ask what is said of the device.

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
from soakwatch_rules.rule import Outcome

_WORDS = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.NOT_APPLICABLE)


class SoakEvents:
    """Tells a soak run of events, and asks for its verdict.

    | Library | soakwatch.integrations.robot | last | # the newest run below runs |
    | Library | soakwatch.integrations.robot | http://127.0.0.1:8720 | token=env:SOAK_TOKEN |

    Every test has its own view: `Soak Verdict Should Be` is about the events that this test told.
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

        ``expect`` says what it brings and must bring (``reboot=1``; several with commas), ``within`` how long after its
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
        """Marks a moment (now, or ``at``: ISO 8601 with a zone); with ``until`` a stretch that is over.

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
        """Fails unless what is said of the device is one of the outcomes: pass, warn, inconclusive, fail.

        It is about the events of this test, from the first begin to the last end; with ``scope=run``, or if the test
        told none, about the run so far. A run cannot pass before its planned end. Returns the reason.

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
        said = self._said(scope)
        if said.outcome.value not in wanted:
            raise AssertionError(f"the soak verdict is {said.outcome.value}, not {' or '.join(wanted)}: {said.reason}")
        return said.reason

    def _said(self, scope: str) -> InterimVerdict:
        run = self._run()
        told: list[StoredEvent] = run.told
        if scope == "run" or not told:
            return run.verdict()
        end_ns = max(one.event.end_ns or one.event.begin_ns for one in told)
        return run.verdict(end_ns).during(min(one.event.begin_ns for one in told), end_ns)

    def _run(self) -> SoakRun:
        if self._known is None:
            run, token, runs, ca = self._where
            if not run:
                raise SoakwatchError(f"no run given: pass it to the library, or export {RUN_VARIABLE}")
            self._known = attach(run, token=token, ca=ca, runs=runs)
        return self._known


robot = SoakEvents
"""Robot Framework takes the class that is called as its module."""


def _counts(text: str | Mapping[str, int]) -> dict[str, int]:
    if not isinstance(text, str):
        return {str(key): int(count) for key, count in text.items()}
    made = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, count = (word.strip() for word in part.partition("="))
        if not (key and count.isascii() and count.isdecimal() and len(count) < 10):
            raise EventRefusedError(f"expect: {part!r} is not WHAT=N, such as reboot=1")
        made[key] = int(count)
    return made


def _texts(labels: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in labels.items()}
