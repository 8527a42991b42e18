"""Runs of the lab: runs soakwatch in the monitor's namespace, performs a scenario's actions on time, and checks the
result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from swlab import life
from swlab.places import MONITOR
from swlab.scenarios import Action, Scenario
from swlab.trouble import LabError, call, wait_for

HERE = Path(__file__).parents[1]
_MAX_RUN_S = 300.0
_LASTS, _REST = "6s", "8s"  # of a fault, and of the time before and after each
_WORST = ("fail", "inconclusive", "warn", "pass", "not applicable")
_CODES = {0: "pass", 1: "fail", 3: "inconclusive"}


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a run."""

    scenario: Scenario
    folder: Path
    verdict: str
    data: Mapping[str, object]

    @property
    def failed(self) -> tuple[str, ...]:
        """Rules that failed."""
        return tuple(sorted({str(f["rule"]) for f in findings(self.data) if f["outcome"] == "fail"}))

    @property
    def reason(self) -> str:
        """The verdict's reason."""
        return str(self.data.get("reason", "no verdict"))

    @property
    def wrong(self) -> str:
        """What differs from the expectation; "" if nothing does."""
        if self.scenario.sees and self.verdict == self.scenario.expected:
            return unseen(self.scenario, self.data)
        if self.verdict != self.scenario.expected:
            return f"{self.verdict} instead of {self.scenario.expected}: {self.reason}"
        if tuple(rule for rule in self.failed if rule not in self.scenario.may_fail) != self.scenario.fails:
            return f"failed are {', '.join(self.failed) or 'none'} instead of {', '.join(self.scenario.fails)}"
        for rule, target, expected in self.scenario.says:
            if (said := self.said(rule, target)) not in expected:
                return f"{rule} says {said} of {target} instead of {' or '.join(expected)}"
        return ""

    def said(self, rule: str, target: str) -> str:
        """The worst outcome of a rule's findings on a target."""
        told = {str(f["outcome"]) for f in findings(self.data) if (f["rule"], f["target"]) == (rule, target)}
        return next((outcome for outcome in _WORST if outcome in told), "nothing")


def findings(data: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The findings of a verdict."""
    listed = data.get("findings", [])
    assert isinstance(listed, list)
    return listed


def run(scenario: Scenario, runs: Path) -> Came:
    """Run a scenario, after making the lab if needed, and restore the lab afterwards. Raises LabError."""
    if life.settled() if scenario.forwards else life.reachable():
        life.up(forwards=scenario.forwards)
    folder = new_folder(runs, scenario.name)
    with scenario.background():
        try:
            if scenario.sees:
                return drill(scenario, folder)
            code = observe(HERE / "plans" / f"{scenario.plan or scenario.name}.yaml", folder, scenario.actions)
        finally:
            scenario.afterwards()
    return Came(scenario, folder, _CODES.get(code, f"status {code}"), verdict_of(folder))


def drill(scenario: Scenario, folder: Path) -> Came:
    """Make the scenario's faults with ``soakwatch drill``; passes if the drill completed. Raises LabError."""
    kinds = ",".join(kind for kind, _ in scenario.sees)
    plan = HERE / "plans" / f"{scenario.plan or scenario.name}.yaml"
    result = folder / "drill.json"
    words = ["ip", "netns", "exec", MONITOR, soakwatch(), "drill", str(plan), "--yes", "--kinds", kinds]
    words += ["--lasts", _LASTS, "--rest", _REST, "--json", str(result), "--runs", str(folder)]
    folder.mkdir()
    with folder.with_suffix(".log").open("wb") as output:
        try:
            done = subprocess.run(
                words, cwd=HERE, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=_MAX_RUN_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"the drill was not over after {_MAX_RUN_S:g} s: see {output.name}") from None
    data = json.loads(result.read_text()) if result.is_file() else {}
    return Came(scenario, folder, _CODES.get(done.returncode, f"status {done.returncode}"), data)


def unseen(scenario: Scenario, data: Mapping[str, object]) -> str:
    """The faults of a drill that were not made, or not seen by the expected rules; "" if all were."""
    faults = data.get("faults", [])
    assert isinstance(faults, list)
    wrong = []
    for kind, rules in scenario.sees:
        made = [fault for fault in faults if fault["fault"] == kind]
        troubles = [str(fault["trouble"]) for fault in made if fault["trouble"]]
        seen = {str(each["rule"]) for fault in made for each in fault["seen"]}
        if not made or troubles:
            wrong.append(f"{kind} was not made: {'; '.join(troubles) or 'it is not in the list'}")
        elif not seen & set(rules):
            wrong.append(f"{kind} was seen by {', '.join(sorted(seen)) or 'nobody'} instead of {' or '.join(rules)}")
    return "; ".join(wrong)


def verdict_of(folder: Path) -> Mapping[str, object]:
    """The verdict of a run; empty if there is none."""
    try:
        verdict = json.loads((folder / "verdict.json").read_text())
    except (OSError, ValueError):
        return {}
    assert isinstance(verdict, dict)
    return verdict


def new_folder(runs: Path, name: str) -> Path:
    """The path of a new folder."""
    runs.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return runs.resolve() / f"{stamp}-lab-{name}"


def observe(plan: Path, folder: Path, actions: Sequence[Action], *options: str, longest_s: float = _MAX_RUN_S) -> int:
    """Run soakwatch and perform actions at their times from the start of the run; returns the exit code. The output
    goes to ``FOLDER.log``. Raises LabError, and then ends the run."""
    words = ["ip", "netns", "exec", MONITOR, soakwatch(), "run", str(plan), "--into", str(folder), *options]
    log = folder.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(words, cwd=HERE, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            begin = _begin(process, folder, log)
            for action in actions:
                _until(begin + action.at_s, process, log)
                print(f"  {action.at_s:g} s: {action.what}", file=sys.stderr, flush=True)
                action.do()
            return process.wait(longest_s)
        except subprocess.TimeoutExpired:
            raise LabError(f"the run was not over after {longest_s:g} s: see {log}") from None
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def soakwatch() -> str:
    """The command that SOAKWATCH names, or the installed one. Raises LabError."""
    if named := os.environ.get("SOAKWATCH"):
        return named
    installed = Path(sys.executable).with_name("soakwatch")
    command = str(installed) if installed.exists() else shutil.which("soakwatch")
    if command is None:
        raise LabError("soakwatch is not installed: `tests/run` or `deploy/demo` makes .venv in the checkout")
    return command


def _begin(process: subprocess.Popen[bytes], folder: Path, log: Path) -> float:
    """The time at which the first phase began, by this machine's clock; from soakwatch's own command, which may be one
    of another Python than this."""
    begins: list[float] = []

    def begun() -> bool:
        if process.poll() is not None:
            tail = " ".join(log.read_text(errors="replace").split())[-300:]
            raise LabError(f"soakwatch ended at once: {tail}")
        if not (folder / "record.sqlite").exists():
            return False
        listed = json.loads(call(soakwatch(), "runs", str(folder.parent), "--json"))
        begins.extend(
            datetime.fromisoformat(run["start"]).timestamp()
            for run in listed
            if run["run"] == folder.name and run["samples"] and run["start"]
        )
        return bool(begins)

    wait_for(begun, "the begin of the run", 120)
    return begins[0]


def _until(moment: float, process: subprocess.Popen[bytes], log: Path) -> None:
    while (left := moment - time.time()) > 0:
        if process.poll() is not None:
            raise LabError(f"the run ended early: see {log}")
        time.sleep(min(left, 0.2))
