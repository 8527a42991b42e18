"""Runs to tell events to: a small record, a server of it in this process, and commands in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.served import ServedRun, serve_run

SECOND = 10**9
BACK_S = 600
"""So long before now the recorded runs began."""

Recorded = Callable[..., Path]
Until = Callable[[Callable[[], bool], str], None]
Events = Callable[[Path], list[Event]]


def record_run(folder: Path, *, reboot_s: int | None = None, ended: bool = False) -> Path:
    """A record of a device that was read each second from ten minutes ago until now.

    It rebooted ``reboot_s`` seconds after the begin, if that is given; ``ended`` says that the run is over.
    """
    begin_ns = time.time_ns() - BACK_S * SECOND
    with Record.create(folder) as record:
        for key, text in {"run": folder.name, "start_ns": str(begin_ns)}.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", SECOND, required=True)
        record.begin_phase("soak", begin_ns)
        polls = []
        for second in range(BACK_S + 1):
            due = begin_ns + second * SECOND
            up = second + 1000.0 if reboot_s is None or second < reboot_s else float(second - reboot_s)
            sample = Sample("system.uptime", "", up, due)
            polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer((sample,), (), ())))
        record.put(polls)
        if ended:
            record.set_meta("ended_ns", str(begin_ns + BACK_S * SECOND))
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Writes such records below ``runs``."""

    def record(name: str = "run", *, reboot_s: int | None = None, ended: bool = False) -> Path:
        return record_run(tmp_path / "runs" / name, reboot_s=reboot_s, ended=ended)

    return record


@pytest.fixture
def run(recorded: Recorded) -> Path:
    """The folder of a run whose device was well."""
    return recorded()


@pytest.fixture
def served(run: Path) -> Iterator[ServedRun]:
    """A server of that run on a free port."""
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as server:
        yield server


@pytest.fixture
def client(served: ServedRun) -> Iterator[httpx.Client]:
    """Someone who has the token; no certificates are loaded, which costs more than most answers."""
    assert served.token_file is not None
    token = served.token_file.read_text(encoding="ascii").strip()
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(
        base_url=f"{served.url}/api", headers=headers, trust_env=False, verify=False, timeout=240
    ) as connection:
        yield connection


@pytest.fixture
def events_of() -> Events:
    """The events of a record, in order of their begin."""

    def read(folder: Path) -> list[Event]:
        with RecordView.open(folder) as view:
            return [stored.event for stored in view.events()]

    return read
