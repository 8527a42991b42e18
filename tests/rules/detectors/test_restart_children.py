"""ProcessRestart: sessions and workers that take turns, and several sources that see one restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.rules.detectors.test_crash_rules import N, announced, finding_of, happened, life, restarted, starts, ups

from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.signals import PROCESS

SESSION = "process=web,instance=1"


def session(*changes: int, child: float = 1.0, down: tuple[int, int] = (N, N)) -> list[Series]:
    """The readings of a further instance whose occupant changes before these seconds."""
    up = replace(ups(down), object=SESSION)
    alive = up.values > 0
    begun = replace(starts(*changes), object=SESSION, value=np.where(alive, starts(*changes).values, np.nan))
    of = replace(life("process.child", [child if here else np.nan for here in alive]), object=SESSION)
    return [up, begun, of]


def test_children_that_take_turns_are_no_restarts() -> None:
    """Sessions of a daemon come and go in one slot; the same changes of a process that is no child are restarts."""
    started = [happened("process.start", t, SESSION) for t in (20, 40, 60)]
    finding = finding_of(ProcessRestart(), session(20, 40, 60), *started, object_name=SESSION)
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)
    assert "3 changes of child process" in finding.reason
    assert finding_of(ProcessRestart(), session(20, 40, 60, child=0.0), object_name=SESSION).measured == 3.0


def test_a_session_that_ends_is_not_gone() -> None:
    """It need not stay."""
    finding = finding_of(
        ProcessRestart(), session(down=(60, N)), happened("process.exit", 60, SESSION), object_name=SESSION
    )
    assert finding.outcome is Outcome.PASS


def test_a_worker_that_is_replaced_once_warns() -> None:
    """A pool that ran steadily loses one of its workers and regains it; announced it passes."""
    lost = session(50)
    assert finding_of(ProcessRestart(), lost, object_name=SESSION).outcome is Outcome.WARN
    planned = announced("process.restart", 1, 45, 60, SESSION)
    assert finding_of(ProcessRestart(), lost, planned, object_name=SESSION).outcome is Outcome.PASS


def test_two_sources_that_see_one_restart_count_it_once() -> None:
    """Agent and ssh tell of the same new pid some seconds apart, and of the same exit; another pid is another one."""
    seen = [happened("process.exit", index, PROCESS, pid="1", started="then") for index in (50, 57)]
    seen += [happened("process.restart", index, PROCESS, old_pid="1", new_pid="2") for index in (51, 58)]
    assert restarted(ups(), starts(51), *seen).measured == 1.0
    assert restarted(ups(), starts(51), *seen, happened("process.restart", 59, PROCESS, new_pid="3")).measured == 2.0
