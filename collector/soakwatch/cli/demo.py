"""The demo: two copies of a small HTTP service under load; one leaks, and is killed and restarted once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import yaml

from soakwatch.cli.foreground import run_to_the_end
from soakwatch.cli.outlet import Terminal
from soakwatch.core.clock import SteadyClock
from soakwatch.core.errors import EXIT_BROKEN, EXIT_PASS, MonitorBrokenError
from soakwatch.engine.start import begin
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.web import DEFAULT_WEB
from soakwatch.record import RecordView
from soakwatch.runs.catalog import new_folder
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import DUT, GENERATOR, MONITOR

BASELINE_S, SOAK_S, SPIKE_S, RECOVERY_S = 20, 80, 15, 20
KILL_AFTER_S = BASELINE_S + SOAK_S / 2
LEAK_BYTES = 16_384  # per request; at 50 requests/s this is 0.8 MB/s, on top of about 25 MB
SERVICE, LOAD_MODULE = "soakwatch.cli.demo_service", "soakwatch.cli.demo_load"
LEAKER, TWIN = "leaker", "twin"


def process_name(service: str) -> str:
    """The word in the service's command line by which this demo, and no other one running now, finds it."""
    return f"{service}-{os.getpid()}"


class Service:
    """One copy of the service on one port."""

    def __init__(self, name: str, leak_bytes: int = 0) -> None:
        self._name, self._leak_bytes, self.port = name, leak_bytes, 0
        self._process = self._start()

    def kill_and_restart(self) -> None:
        """Simulate a crash with a supervisor: SIGKILL, then a new process on the same port."""
        self._process.kill()
        self._process.communicate()
        self._process = self._start()

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            SERVICE,
            "--name",
            process_name(self._name),
            "--port",
            str(self.port),
            "--leak",
            str(self._leak_bytes),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.strip().isdecimal():
            raise MonitorBrokenError(
                f"the demo service {self._name} did not start on port {self.port}: check that the port is free"
            )
        self.port = int(line)
        return process


def demo_plan(ports: tuple[int, ...]) -> Plan:
    """The plan of the demo, for services on these ports."""
    load = f"{BASELINE_S}s@10,{SOAK_S}s@50,{SPIKE_S}s@150,{RECOVERY_S}s@10"
    urls = [f"http://127.0.0.1:{port}/" for port in ports]
    watched = {
        name: {
            "role": DUT,
            "sources": [{"local": {"interval": "1s", "probes": ["process"]}}],
            "watch": {"processes": [{"name": name, "cmdline": f"demo_service --name {process_name(name)} "}]},
        }
        for name in (LEAKER, TWIN)
    }
    generator = {
        "role": GENERATOR,
        "sources": [
            {"command": {"interval": "1s", "run": [sys.executable, "-m", LOAD_MODULE, *urls, "--profile", load]}}
        ],
    }
    phases = [
        {"baseline": f"{BASELINE_S}s"},
        {"soak": f"{SOAK_S}s"},
        {"spike": f"{SPIKE_S}s"},
        {"recovery": f"{RECOVERY_S}s"},
    ]
    host = {"role": MONITOR, "sources": [{"local": {"interval": "1s"}}], "watch": {"processes": []}}
    plan = {"name": "demo", "phases": phases, "targets": {**watched, "generator": generator, "host": host}}
    return plan_from_text(yaml.safe_dump(plan, sort_keys=False), "demo plan")


def run_demo(terminal: Terminal, runs: Path, group: str = "") -> int:
    """Run the demo, which ``group`` may read; returns 0 if the verdict is as expected, else 4."""
    with ExitStack() as stack:
        services = {LEAKER: Service(LEAKER, LEAK_BYTES), TWIN: Service(TWIN)}
        for service in services.values():
            stack.callback(service.stop)
        plan = demo_plan(tuple(service.port for service in services.values()))
        clock = SteadyClock()
        folder = new_folder(runs, plan.name, clock.now_ns())
        course, record = begin(plan, folder, clock, ["soakwatch", "demo"], stop_on_fail=False, group=group)
        crash = threading.Timer(KILL_AFTER_S, services[LEAKER].kill_and_restart)
        stack.callback(crash.cancel)
        crash.start()
        run_to_the_end(terminal, course, record, clock, web=DEFAULT_WEB)
    problems = surprises(folder)
    for sentence in problems:
        print(f"unexpected demo result: {sentence}", file=sys.stderr)
    if not problems:
        print("Demo OK: leaker failed (leak, restart), twin passed.")
    return EXIT_BROKEN if problems else EXIT_PASS


def surprises(folder: Path) -> list[str]:
    """How the findings differ from the expected ones, one sentence each."""
    with RecordView.open(folder) as view:
        findings = view.findings(live=False)
        twin = next(target for target in judge_record(view).targets if target.target == TWIN)
    problems = [
        f"{rule} did not fail for the {LEAKER}"
        for rule in ("memory_growth", "process_restart")
        if not any(f.rule == rule and f.target == LEAKER and f.outcome is Outcome.FAIL for f in findings)
    ]
    if twin.outcome is not Outcome.PASS:
        problems.append(f"the {TWIN} did not pass: {twin.reason}")
    return problems
