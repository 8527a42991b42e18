"""What is lost when something breaks: one run of five sources through eight drills; prints a table, asserts nothing.

    python tests/bench/drills.py                     with the network cut for 5 minutes; 12 minutes in all
    python tests/bench/drills.py --cut 20s           the quick pass

A device with net-snmpd, sshd and the agent stands in a network namespace, the installed collector in another, and the
cable between them is really cut. Needs root. A poll counts as recovered if it was lost at its time and the agent handed
in later what it had seen by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.drill_lab import AUTH, COMMUNITY, DEVICE, PRIV, SOAKWATCH, Lab

from soakwatch.core.units import seconds, show_seconds
from soakwatch.record import RecordView
from soakwatch.record.model import SeriesKey, Source
from soakwatch_model.case import Ledger
from soakwatch_model.sample import Poll, PollOutcome
from soakwatch_model.window import Window

TARGETS = {"snmp-v2c": "SNMP v2c", "snmp-v3": "SNMP v3", "ssh": "SSH", "agent": "agent", "icmp": "ICMP"}
_REST_S, _EDGE_S, _DOWN_S, _BUSY_S = 8.0, 3.0, 3.0, 30.0
_PATIENCE_S = 150.0
_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Drill:
    """What was broken from ``begin_ns`` to ``mended_ns``; the account is of the time around it, until all was well."""

    name: str
    begin_ns: int
    mended_ns: int
    end_ns: int

    @property
    def window(self) -> Window:
        """The time that is accounted for."""
        return Window(self.begin_ns - round(_EDGE_S * 1e9), self.end_ns)


class Collector:
    """The installed collector in its namespace: started, killed, resumed, ended."""

    def __init__(self, lab: Lab) -> None:
        self.run = lab.folder / "run"
        self._lab, self._log = lab, lab.folder / "collector.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin the run."""
        plan = self._lab.folder / "plan.yaml"
        plan.write_text(json.dumps(plan_of(self._lab)), encoding="utf-8")
        self._launch("run", plan, "--into", self.run)

    def resume(self) -> None:
        """Go on after a kill."""
        self._launch("resume", self.run)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def end(self) -> int:
        """Ctrl-C; the exit code of the judging."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(180)

    def settled(self, since_ns: int) -> bool:
        """Whether every source has answered since a moment, and the device was reached."""
        if not (self.run / "record.sqlite").exists():
            return False
        with RecordView.open(self.run) as view:
            wanted = [source for source in view.sources() if source.target in TARGETS]
            if len(wanted) < len(TARGETS) or not view.counts().polls:
                return False
            answers = answers_of(view, wanted)
            return all(answers[source.target] and answers[source.target][-1] > since_ns for source in wanted)

    def _launch(self, *words: str | Path) -> None:
        environment = {**os.environ, "DRILL_COMMUNITY": COMMUNITY, "DRILL_AUTH": AUTH, "DRILL_PRIV": PRIV}
        command = self._lab.within(self._lab.here, [SOAKWATCH, *words])
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def plan_of(lab: Lab) -> dict[str, object]:
    """One device, a target for each way to it, so that each has an account of its own."""
    v3 = {"version": "3", "user": "drill", "auth": "env:DRILL_AUTH", "priv": "env:DRILL_PRIV"}
    sources: dict[str, dict[str, object]] = {
        "snmp-v2c": {"snmp": {"host": DEVICE, "community": "env:DRILL_COMMUNITY"}},
        "snmp-v3": {"snmp": {"host": DEVICE, **v3}},
        "ssh": {"ssh": lab.login},
        "agent": {"agent": {**lab.login, "folder": lab.agent_folder}},
        "icmp": {"icmp": {"host": DEVICE}},
    }
    return {"duration": "2h", "targets": {name: {"sources": [source]} for name, source in sources.items()}}


def answers_of(view: RecordView, sources: Sequence[Source]) -> Mapping[str, list[int]]:
    """When each target answered at its time (not later, from a spool), in order; for echoes, when one came back."""
    targets = {source.id: source.target for source in sources}
    answered_ns: dict[str, list[int]] = {target: [] for target in targets.values()}
    highest: dict[int, int] = {}
    for poll in _polls(view):
        if poll.due_ns > highest.get(poll.source, 0):
            highest[poll.source] = poll.due_ns
            if poll.outcome is PollOutcome.OK and poll.source in targets:
                answered_ns[targets[poll.source]].append(poll.start_ns + poll.duration_ns)
    reached = view.series(SeriesKey("icmp", "reach.up", _echo(view)))
    answered_ns["icmp"] = [int(up_ns) for up_ns, up in zip(reached.time_ns, reached.values, strict=True) if up > 0]
    return answered_ns


def _polls(view: RecordView) -> Iterator[Poll]:
    cursor = ""
    while True:
        polls, cursor = view.polls_after(cursor, _AT_ONCE)
        if not polls:
            return
        yield from polls


def _echo(view: RecordView) -> str:
    return next((key.object for key in view.keys(["reach.up"]) if key.target == "icmp"), "")


class Exercise:
    """The drills, one after another, in one run."""

    def __init__(self, lab: Lab, collector: Collector) -> None:
        self._lab, self._collector = lab, collector
        self.done: list[Drill] = []

    def drill(self, name: str, harm: Callable[[], None], lasting_s: float, mend: Callable[[], None]) -> None:
        """Rest, break, wait, mend, and wait until all is well and was for a while."""
        time.sleep(_REST_S)
        begin_ns = time.time_ns()
        harm()
        time.sleep(lasting_s)
        mend()
        mended_ns = time.time_ns()
        self.wait_until_settled(mended_ns, name)
        time.sleep(_EDGE_S)
        self.done.append(Drill(name, begin_ns, mended_ns, time.time_ns()))
        print(f"{name}: {show_seconds(round((time.time_ns() - begin_ns) * 1e-9))}", file=sys.stderr)

    def wait_until_settled(self, since_ns: int, what: str) -> None:
        """Raises RuntimeError if a source does not come back."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._collector.settled(since_ns):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not every source came back within {_PATIENCE_S:g} s")
            time.sleep(0.5)

    def all(self, cut_s: float) -> None:
        """All of them."""
        lab = self._lab
        self.drill("snmpd killed (SIGKILL), back after 3 s", lab.stop_snmpd, _DOWN_S, lab.start_snmpd)
        self.drill(
            "snmpd killed, back with a new engine ID after 3 s",
            lab.stop_snmpd,
            _DOWN_S,
            lambda: lab.start_snmpd(new_engine=True),
        )
        self.drill("sshd and its sessions killed, back after 3 s", lab.stop_sshd, _DOWN_S, lab.start_sshd)
        self.drill("SSH sessions killed, sshd runs on", lab.kill_sessions, 0.0, lambda: None)
        self.drill("agent killed (SIGKILL); its keeper starts it anew", self._kill_agents, 0.0, lambda: None)
        self.drill("collector killed (SIGKILL), resumed after 10 s", self._collector.kill, 10.0, self._collector.resume)
        self.drill(f"network cut for {show_seconds(cut_s)}", lab.cut, cut_s, lab.mend)
        how: list[str] = []
        self.drill(
            f"10 % of the packets lost each way for {_BUSY_S:g} s",
            lambda: how.append(lab.drop(0.1)),
            _BUSY_S,
            lab.drop_no_more,
        )
        print(f"packets dropped by {how[0]}", file=sys.stderr)

    def _kill_agents(self) -> None:
        for process in self._lab.agents():
            process.kill()


@dataclass(frozen=True, slots=True)
class Row:
    """One source in one drill; ``unreachable`` are polls that brought the answer that nobody is there."""

    name: str
    account: Ledger
    unreachable: int
    back_s: float | None

    @property
    def untouched(self) -> bool:
        """Whether every poll was answered in its time."""
        return self.account.got == self.account.due and not (self.account.recovered or self.unreachable)

    @property
    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        account = self.account
        lost = account.due - account.got
        why = f" ({', '.join(f'{number} {word}' for word, number in account.lost.items())})" if lost else ""
        refusal = f", {self.unreachable} of them told that nobody is there" if self.unreachable else ""
        gap = account.longest_gap
        return (
            self.name,
            str(account.due),
            f"{account.got}{refusal}",
            f"{lost}{why}",
            str(account.recovered),
            "-" if gap is None else f"{(gap.end_ns - gap.begin_ns) * 1e-9:.1f} s",
            "-" if self.back_s is None else f"{self.back_s:.1f} s",
        )


def rows_of(view: RecordView, drill: Drill, answers: Mapping[str, Sequence[int]]) -> list[Row]:
    """The account of each source in a drill."""
    window = drill.window
    reached = view.series(SeriesKey("icmp", "reach.up", _echo(view)), window.begin_ns, window.end_ns).values
    silent = {"icmp": int((reached == 0).sum())}
    table_rows = []
    for account in view.ledgers(window):
        if account.target in TARGETS:
            back = next(
                (answered_ns for answered_ns in answers[account.target] if answered_ns >= drill.mended_ns), None
            )
            back_s = None if back is None else (back - drill.mended_ns) * 1e-9
            table_rows.append(Row(TARGETS[account.target], account, silent.get(account.target, 0), back_s))
    return table_rows


def table(run: Path, drills: Sequence[Drill]) -> None:
    """The drills as Markdown: a line for each source that a drill touched, one for those that it did not."""
    heads = ("drill", "source", "polls due", "got", "lost", "recovered from the spool", "longest gap", "back after")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    with RecordView.open(run) as view:
        answers = answers_of(view, [source for source in view.sources() if source.target in TARGETS])
        for drill in drills:
            rows = rows_of(view, drill, answers)
            well = [row for row in rows if row.untouched]
            lines = [row.cells for row in rows if not row.untouched]
            if well:
                due = "/".join(dict.fromkeys(str(row.account.due) for row in well))
                lines.append((", ".join(row.name for row in well), f"{due} each", "all", "0", "0", "-", "-"))
            for number, cells in enumerate(lines):
                print("| " + " | ".join(("" if number else drill.name, *cells)) + " |")


def main() -> None:
    """Run the drills; print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cut", default="5m", help="how long the network is cut (default: 5m)")
    parser.add_argument("--keep", type=Path, help="leave the run and the logs in this folder")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("network namespaces need root")
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soakwatch-drills-")))
        folder.mkdir(parents=True, exist_ok=True)
        lab = Lab(folder.resolve(), stack)
        lab.open()
        collector = Collector(lab)
        stack.callback(collector.kill)
        collector.start()
        exercise = Exercise(lab, collector)
        exercise.wait_until_settled(time.time_ns(), "the beginning")
        exercise.all(seconds(options.cut))
        collector.end()
        table(collector.run, exercise.done)


if __name__ == "__main__":
    main()
