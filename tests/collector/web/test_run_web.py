"""Runs and `soakwatch serve` as commands: what they say of their event API, what it does, what it does not disturb."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from soakwatch.plan.web import WebPlan
from soakwatch.record import RecordView
from soakwatch.web.supervisor import WebNotice, supervised_web

Started = Callable[..., "subprocess.Popen[str]"]
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Until = Callable[[Callable[[], bool], str], None]
Recorded = Callable[..., Path]

ME = f"pid:{os.getpid()}"
LONG = ("run", "--process", ME, "--interval", "200ms", "--duration", "5m", "--into", "run")


def first_line(process: subprocess.Popen[str]) -> str:
    """What a command says first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def address_of(line: str) -> str:
    """The address of the API in the first line of a run."""
    match = re.search(r"http://\S+", line)
    assert match is not None, line
    return match[0]


def polls(run: Path) -> int:
    """Committed polls of a record that is being written."""
    with RecordView.open(run) as view:
        return view.counts().polls


def rest(process: subprocess.Popen[str]) -> str:
    """What a command says after that, to its end."""
    assert process.stdout is not None
    output = process.stdout.read()  # communicate() would lose what the first line brought along
    process.wait(timeout=240)
    return output


def ended(process: subprocess.Popen[str]) -> str:
    """End a run properly; what it said since."""
    process.send_signal(signal.SIGINT)
    output = rest(process)
    assert process.returncode in {0, 1, 3}, output
    return output


def bearer(run: Path) -> dict[str, str]:
    """The header that a run wants."""
    return {"authorization": f"Bearer {(run / 'web.token').read_text().strip()}"}


def test_without_web_nothing_is_served(started: Started, until: Until, tmp_path: Path) -> None:
    """`--no-web`, and `web: false` in the plan; the modules of HTTP are not even loaded."""
    process, run = started(*LONG, "--no-web"), tmp_path / "run"
    assert first_line(process) == "recording to run"
    until(lambda: (run / "record.sqlite").is_file() and polls(run) > 2, "polls")
    assert not (run / "web.url").exists()
    maps = Path(f"/proc/{process.pid}/net/tcp").read_text()
    assert maps
    sockets = [os.readlink(fd) for fd in Path(f"/proc/{process.pid}/fd").iterdir() if fd.is_symlink()]
    listening = {line.split()[9] for line in maps.splitlines()[1:] if line.split()[3] == "0A"}
    assert not {f"socket:[{inode}]" for inode in listening} & set(sockets)
    plan = tmp_path / "plan.yaml"
    plan.write_text("duration: 3s\nweb: false\ntargets: {local: {sources: [{local: {interval: 1s}}]}}\n")
    quiet = started("run", plan, "--into", "quiet")
    assert first_line(quiet) == "recording to quiet"


def test_a_server_that_cannot_be_is_a_warning(started: Started, until: Until, tmp_path: Path) -> None:
    """The run goes on without it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        plan = tmp_path / "plan.yaml"
        sources = "targets: {local: {sources: [{local: {interval: 1s}}]}}"
        plan.write_text(f"duration: 5m\nweb: {{listen: '{taken}'}}\n{sources}\n")
        process = started("run", plan, "--into", "run")
        assert first_line(process) == (
            f"warning: cannot listen on {taken}: address already in use; the run goes on without its page and event API"
        )
        assert first_line(process) == "recording to run"
        until(lambda: polls(tmp_path / "run") > 2, "polls")
    assert not (tmp_path / "run" / "web.url").exists()


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (None, None),
        (WebPlan(token="env:NOT_THERE"), "the environment variable NOT_THERE is not set"),
        (WebPlan(cert="none.pem", key="none.key"), "the certificate none.pem and the key none.key cannot be used"),
        (WebPlan(listen="0.0.0.0:0"), "reachable from other machines"),
        (WebPlan(listen="192.0.2.1:80", token=None, cert="none.pem", key="none.key"), "cannot be used"),
    ],
)
def test_whatever_is_wrong_with_a_server_the_block_runs(run: Path, plan: WebPlan | None, sentence: str | None) -> None:
    """One sentence, and nothing of it stays behind."""
    messages: list[str] = []
    with supervised_web(plan, run, time.time_ns, messages.append) as where:
        assert where == WebNotice()
    assert len(messages) == (0 if sentence is None else 1)
    assert (sentence or "") in "".join(messages)
    assert [path.name for path in run.iterdir() if "web" in path.name] == []


@pytest.mark.parametrize(
    ("web", "sentence"),
    [
        ("{listen: '0.0.0.0:8720'}", "reachable from other machines: give cert and key"),
        ("{listen: '0.0.0.0:8720', token: 'env:TOKEN'}", "reachable from other machines"),
        ("{listen: here}", "'here' is not an address"),
        ("{token: in-the-clear}", "write env:NAME or file:PATH"),
        ("{cert: a.pem}", "needs both cert and key"),
        ("{port: 80}", "unknown key 'port'"),
        ("maybe", "web"),
    ],
)
def test_a_plan_that_would_serve_badly_is_refused(soakwatch: Command, tmp_path: Path, web: str, sentence: str) -> None:
    """Before anything begins, with the place in the plan; no secret is repeated."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"duration: 3s\nweb: {web}\ntargets: {{local: {{sources: [local]}}}}\n")
    done = soakwatch("run", plan)
    assert done.returncode == 2
    assert re.search(r"plan\.yaml:2:\d+: ", done.stderr)
    assert sentence in done.stderr
    assert "in-the-clear" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_flood_of_requests_costs_no_poll(started: Started, until: Until, tmp_path: Path) -> None:
    """Eight clients that ask as fast as they can, with and without the token: polls go on, and none fails by it."""
    process, run = started(*LONG), tmp_path / "run"
    url = address_of(first_line(process))
    until(lambda: polls(run) > 5, "polls")
    over, answers = threading.Event(), [0] * 8

    def flood(number: int) -> None:
        headers = bearer(run) if number % 2 else {}
        with httpx.Client(trust_env=False, verify=False, headers=headers, timeout=240) as client:
            while not over.is_set():
                kind = f"flood-{number}-{answers[number]}"
                answer = client.post(f"{url}/api/runs/last/events", json={"kind": kind, "begin": "now"})
                assert answer.status_code == (201 if number % 2 else 401)
                answers[number] += 1

    threads = [threading.Thread(target=flood, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    before = polls(run)
    until(lambda: polls(run) > before + 15 and min(answers) > 3, "polls under load, and answers to each client")
    over.set()
    for thread in threads:
        thread.join(240)
    ended(process)
    with RecordView.open(run) as view:
        (local,) = [ledger for ledger in view.ledgers(view.window()) if ledger.source.startswith("local")]
        recorded = sum(stored.event.kind.startswith("flood") for stored in view.events())
    assert recorded == sum(answers[1::2])
    assert local.got > 15
    assert not set(local.lost) - {"overrun", "missed"}


def test_serve(started: Started, soakwatch: Command, recorded: Recorded, until: Until, tmp_path: Path) -> None:
    """`soakwatch serve` tells of all runs of a folder, takes events for each, and ends with Ctrl-C."""
    old, new = recorded("20260101T000000Z-old", ended=True), recorded("20260102T000000Z-new")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "record.sqlite").write_bytes((old / "record.sqlite").read_bytes())
    process = started("serve", "--listen", "127.0.0.1:0")
    banner = re.fullmatch(
        r"serving runs at (http://127\.0\.0\.1:\d+) \(token in runs/web\.token\)", first_line(process)
    )
    assert banner is not None
    runs = tmp_path / "runs"
    with httpx.Client(
        base_url=f"{banner[1]}/api", headers=bearer(runs), trust_env=False, verify=False, timeout=240
    ) as client:
        lines = client.get("/runs").json()["runs"]
        assert [(line["run"], line["state"]) for line in lines] == [(old.name, "ended"), (new.name, "broken off")]
        assert client.get("/runs/last/events").json()["run"] == new.name
        assert client.post(f"/runs/{new.name}/events", json={"kind": "failover"}).status_code == 201
        late = client.post(f"/runs/{old.name}/events", json={"kind": "failover", "at": "2026-01-01T00:00:00Z"})
        assert (late.status_code, "before the run started" in late.json()["error"]) == (400, True)
        for name in ("..%2foutside", "%2e%2e", ".", "outside", "old"):
            assert client.get(f"/runs/{name}/events").status_code in {404, 405}, name  # "." is gone before it is sent
        for _ in range(3):
            assert client.get("/runs").status_code == 200
    listed = soakwatch("runs").stdout
    assert "old" in listed
    process.send_signal(signal.SIGTERM)
    assert (rest(process), process.returncode) == ("ended\n", 0)
    assert stat.S_IMODE((runs / "web.token").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("serve", "nowhere"), "nowhere is not a folder"),
        (("serve", ".", "--listen", "0.0.0.0:8720"), "reachable from other machines"),
        (("serve", ".", "--listen", "[::]:8720", "--token", "env:TOKEN"), "reachable from other machines"),
        (("serve", ".", "--token", "in-the-clear"), "must not be given in clear text"),
        (("serve", ".", "--token", "env:NOT_THERE"), "NOT_THERE is not set"),
        (("serve", ".", "--cert", "a.pem"), "needs both cert and key"),
        (("serve", ".", "--listen", "127.0.0.1:{taken}"), "address already in use"),
    ],
)
def test_serve_refuses_in_one_sentence(soakwatch: Command, words: tuple[str, ...], sentence: str) -> None:
    """Exit 2, and no secret is repeated."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = soakwatch(*(word.replace("{taken}", str(other.getsockname()[1])) for word in words))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1), done.stderr
    assert sentence in done.stderr
    assert "in-the-clear" not in done.stderr


@pytest.mark.slow
def test_two_runs_have_two_addresses(started: Started, tmp_path: Path) -> None:
    """The second finds the usual port taken, or has it; each answers for itself."""
    processes = [started(*LONG[:-1], name) for name in ("one", "two")]
    urls = [address_of(first_line(process)) for process in processes]
    assert len(set(urls)) == 2
    for name, url in zip(("one", "two"), urls, strict=True):
        answer = httpx.get(
            f"{url}/api/runs/current/events",
            headers=bearer(tmp_path / name),
            trust_env=False,
            verify=False,
            timeout=240,
        )
        assert answer.json()["run"] == name
    begun = time.monotonic()
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        rest(process)
    assert time.monotonic() - begun < 80
