"""k6, wrk, Locust and JMeter driven by the run: levels, counts that go on, restarts, and no process left behind."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.collector.sources.loads.iperf3_kit import Figures, failing, figures, loaded, readings, until
from tests.commands import command_in, start
from tests.needs import needs, needs_jmeter, needs_k6

from soakwatch.core.errors import SoakwatchError
from soakwatch.sources.abc import Drivable, Fingerprints, Poller, SourceError, SourceUnreadyError
from soakwatch.sources.loads.k6 import Config as K6Config
from soakwatch.sources.loads.locust import Config as LocustConfig
from soakwatch.sources.programs.driven import DrivenProgram
from soakwatch.sources.programs.released_file import STEP_BYTES, ReleasedFile
from soakwatch.sources.result_files.tail import Tail
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer
from soakwatch_testing import jmeter_double as double
from soakwatch_testing.http_service import HttpService, http_service

ANSWERED = ("load.requests", "")
SENDING = ("load.sending", "")
MAX_S = 240.0
LOCUSTFILE = """\
from locust import HttpUser, constant, task
class User(HttpUser):
    wait_time = constant(0.05)
    @task
    def page(self):
        self.client.get("/")
"""
K6_SCRIPT = """\
import http from 'k6/http';
export const options = { vus: 50, duration: '1s', tags: { lab: 'a' }, thresholds: { http_reqs: ['count<1'] } };
export function setup() { return { url: __ENV.TARGET }; }
export default function (data) { http.get(data.url); }
"""


class Watched:
    """A driven load whose counters may not fall; it keeps its events."""

    def __init__(self, poller: Poller) -> None:
        assert isinstance(poller, DrivenProgram)
        self.driven = poller
        self.answered = 0.0
        self.events: list[Event] = []

    async def poll(self, now_ns: int) -> Answer:
        """One poll."""
        answer = await self.driven.poll(now_ns)
        self.events += answer.events
        for sample in answer.samples:
            if (sample.metric, sample.object) == ANSWERED:
                assert sample.value >= self.answered, "a counter fell"
                self.answered = sample.value
        return answer

    async def more(self, requests: int) -> Figures:
        """Until so many more were answered than by now."""
        wanted = self.answered + requests
        return await until(self, lambda seen: seen.get(ANSWERED, 0) >= wanted)

    async def at_rest(self, seconds: float) -> Figures:
        """Until it says that it sends nothing, and so long, which is what a reader holds a tick back."""
        since_ns = time.time_ns() + round(seconds * 1e9)
        return await until(self, lambda seen: seen.get(SENDING) == 0 and time.time_ns() > since_ns)


@pytest.fixture
def service() -> Iterator[HttpService]:
    """A service that answers after 20 ms."""
    with http_service() as served:
        yield served


def kept_by(folder: Path) -> list[psutil.Process]:
    """The processes that have the folder in their command line."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = " ".join(process.cmdline())
            if str(folder) in words and "generators" in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def gone(ready: Callable[[], bool]) -> None:
    """Waits for what must come."""
    deadline = time.monotonic() + MAX_S
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def through_levels(name: str, folder: Path, keys: dict[str, object], rest_s: float = 7.0) -> Watched:
    """Half, whole, none: each sends what it should, the counts go on, and nothing is left."""
    async with loaded(name, folder, interval="1s", timeout="20s", **keys) as poller:
        load = Watched(poller)
        assert (await until(load, lambda seen: SENDING in seen))[SENDING] == 0
        for level in (0.5, 1.0):
            await load.driven.drive(level)
            await load.more(30)
        await until(load, lambda seen: 0 < seen.get(("load.cpu.utilization", ""), 0) <= 1)
        assert isinstance(poller, Fingerprints)
        section = (await poller.fingerprint())["generator"]
        assert isinstance(section, dict)
        assert section["version"]
        assert str(folder / "generators") not in str(section["config"]), "the same in each run"
        await load.driven.drive(0.0)
        await load.at_rest(rest_s)
        assert load.events == [], "a change of level is no restart"
        assert (folder / "generators").stat().st_size
        assert all(each.stat().st_mode & 0o077 == 0 for each in (folder / "generators").iterdir())
    assert not (folder / "generators").exists()
    assert kept_by(folder) == []
    return load


# --- real ones -------------------------------------------------------------------------------------------------


def test_wrk(tmp_path: Path, service: HttpService) -> None:
    """Its counts are those of the service, over four levels and many runs of wrk."""
    needs("wrk")
    keys: dict[str, object] = {"drive": True, "url": service.url, "full": "4 connections", "each": "1s"}
    load = asyncio.run(through_levels("wrk", tmp_path, keys, rest_s=0))
    assert service.answered - 20 <= load.answered <= service.answered


@pytest.mark.slow
def test_locust(tmp_path: Path, service: HttpService) -> None:
    """Users by level; what the last second of a process brought is in no row, but in what it says at its end."""
    script = tmp_path / "locustfile.py"
    script.write_text(LOCUSTFILE)
    program = Path(sys.executable).with_name("locust")
    keys = {"script": str(script), "host": service.url, "full": "4 users", "program": str(program), "drive": True}
    load = asyncio.run(through_levels("locust", tmp_path, dict(keys)))
    assert service.answered - 10 <= load.answered <= service.answered, "at most those that were on their way"


@pytest.mark.slow
@pytest.mark.parametrize("full", ["40/s", "4 users"])
def test_k6(tmp_path: Path, service: HttpService, full: str) -> None:
    """The load of the script's own options is replaced, the rest of them stays; each answer is counted."""
    script = tmp_path / "soak.js"
    script.write_text(K6_SCRIPT)
    options = ["-e", f"TARGET={service.url}"]
    keys = {"drive": True, "script": str(script), "full": full, "program": needs_k6(), "options": options}
    load = asyncio.run(through_levels("k6", tmp_path, dict(keys)))
    assert service.answered - 10 <= load.answered <= service.answered


@pytest.mark.slow
def test_jmeter(tmp_path: Path, service: HttpService) -> None:
    """A Java behind a shell script: threads by level, and nothing left."""
    script = tmp_path / "soak.jmx"
    script.write_text(double.PLAN)
    options = [f"-Jport={service.url.rpartition(':')[2].strip('/')}"]
    keys = {"drive": True, "script": str(script), "full": "4 users", "program": needs_jmeter(), "options": options}
    load = asyncio.run(through_levels("jmeter", tmp_path, dict(keys)))
    assert service.answered - 100 <= load.answered <= service.answered


# --- a double that misbehaves ----------------------------------------------------------------------------------


def jmeter(folder: Path, *options: str, **more: object) -> dict[str, object]:
    """A driven double, with its test plan."""
    script = folder / "soak.jmx"
    script.write_text(double.PLAN)
    program = str(double.script(folder))
    return {"drive": True, "script": str(script), "full": "4 users", "program": program, "options": options, **more}


@pytest.mark.slow
def test_no_row_is_lost_at_a_change_of_level(tmp_path: Path) -> None:
    """What a process wrote last is counted, though the next one began a new file at once."""
    keys = jmeter(tmp_path, f"-Jtally={tmp_path / 'made'}")
    load = asyncio.run(through_levels("jmeter", tmp_path, keys))
    made = [int(file.read_text()) for file in tmp_path.glob("made-*")]
    assert len(made) == 2
    assert load.answered == sum(made)


def test_one_that_is_killed_is_restarted(tmp_path: Path) -> None:
    """The event says why, the counts go on, and the program's secrets stay where they are."""

    async def go() -> None:
        async with loaded("jmeter", tmp_path, **jmeter(tmp_path)) as poller:
            load = Watched(poller)
            await load.driven.drive(1.0)
            await load.more(40)
            for process in kept_by(tmp_path):
                process.kill()
            await failing(load, "JMeter ended with exit code -9; next attempt after 500 ms")
            await load.more(40)
            (restart,) = load.events
            assert (restart.kind, restart.detail["level"]) == ("generator.restart", "1")
            assert restart.detail["cause"].startswith("JMeter ended")

    asyncio.run(go())


def test_one_that_dies_by_itself_says_why(tmp_path: Path) -> None:
    """Each time it is tried again a little later; its last words are without secrets."""

    async def go() -> None:
        async with loaded("jmeter", tmp_path, **jmeter(tmp_path, "-Jdies=40")) as poller:
            load = Watched(poller)
            await load.driven.drive(1.0)
            first = await failing(load, "JMeter ended")
            assert "OutOfMemoryError: token=… in thread (exit code 1); next attempt after" in first
            if "after 500 ms" in first:  # a busy machine may see the second failure first
                await failing(load, "next attempt after 1 s")
            await until(load, lambda _: load.answered >= 80)  # a busy machine may see a third attempt

    asyncio.run(go())


def test_a_run_that_is_resumed_says_that_counts_begin_again(tmp_path: Path) -> None:
    """What a killed run left is no output of the new program."""

    async def go() -> None:
        keys = jmeter(tmp_path)
        async with loaded("jmeter", tmp_path, **keys) as poller:
            await until(poller, lambda seen: SENDING in seen)
            (folder,) = (tmp_path / "generators").iterdir()
            left = folder / "jmeter.jtl"
            left.write_text("timeStamp,elapsed,success\n1,1,true\n" * 1000)
            shutil.copytree(tmp_path / "generators", tmp_path / "kept")
        shutil.move(tmp_path / "kept", tmp_path / "generators")
        async with loaded("jmeter", tmp_path, **keys) as poller:
            load = Watched(poller)
            assert not left.exists()
            await load.driven.drive(1.0)
            await load.more(4)
            assert load.answered < 1000
            assert [event.detail["cause"].partition(":")[0] for event in load.events] == ["the run was resumed"]

    asyncio.run(go())


def test_one_that_never_begins_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs and writes nothing is no load: the polls say that nothing is sent, then they fail."""
    monkeypatch.setattr("soakwatch.sources.programs.driven.HANDSHAKE_S", 1.0)

    async def go() -> None:
        async with loaded("jmeter", tmp_path, **jmeter(tmp_path, "-Jstuck=1")) as poller:
            load = Watched(poller)
            await load.driven.drive(1.0)
            assert figures(await load.poll(time.time_ns()))[SENDING] == 0
            await failing(load, "JMeter has not begun within 1 s")

    asyncio.run(go())
    assert kept_by(tmp_path) == []


def test_one_that_is_deaf_is_killed_with_the_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets some time to end, and no more."""
    monkeypatch.setattr("soakwatch.sources.programs.driven._FAREWELL_S", 0.3)

    async def go() -> None:
        async with loaded("jmeter", tmp_path, timeout="20s", **jmeter(tmp_path, "-Jdeaf=1")) as poller:
            load = Watched(poller)
            await load.driven.drive(1.0)
            await load.more(20)
            await load.driven.drive(0.0)
            assert kept_by(tmp_path) == []

    asyncio.run(go())


# --- whole runs ------------------------------------------------------------------------------------------------

PLAN = """\
name: driven
phases: [{{baseline: 1s}}, {{ramp: {{for: 3s, load: 50%}}}}, {{soak: {{for: 6s, load: 100%}}}}]
targets:
  dut: {{role: dut, sources: [{{local: {{probes: [load]}}}}]}}
  tg: {{role: generator, sources: [{{{load}}}]}}
"""


def plan_of(folder: Path) -> None:
    """A plan with a driven double."""
    words = jmeter(folder)
    keys = ", ".join(f"{key}: {words[key]}" for key in ("script", "full", "program"))
    (folder / "plan.yaml").write_text(PLAN.format(load=f"jmeter: {{drive: true, {keys}}}"))


def test_a_run_sets_its_levels_and_leaves_nothing(tmp_path: Path) -> None:
    """The record has the users of each phase; the folder of the run has no output of the program."""
    plan_of(tmp_path)
    done = command_in(tmp_path)("run", "plan.yaml", "--runs", "runs", "--no-web")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (run,) = (each.parent for each in (tmp_path / "runs").glob("*/record.sqlite"))
    assert {2, 4} <= set(readings(run, "tg", "load.users"))
    answered = readings(run, "tg", "load.requests")
    assert answered == sorted(answered)
    assert not (run / "generators").exists()
    assert kept_by(tmp_path) == []


def test_a_collector_that_is_killed_takes_the_family_with_it(tmp_path: Path) -> None:
    """Neither the shell nor what it started is left, though nobody could end them."""
    plan_of(tmp_path)
    process = start(["run", "plan.yaml", "--runs", "runs", "--no-web"], tmp_path)
    try:
        gone(lambda: len(kept_by(tmp_path)) >= 3)  # its minder, the shell, and what that started
        process.send_signal(signal.SIGKILL)
        gone(lambda: kept_by(tmp_path) == [])
    finally:
        process.kill()
        process.communicate()


def test_check_tries_the_program(tmp_path: Path) -> None:
    """Version and command are shown; nothing is sent, and nothing is left."""
    plan_of(tmp_path)
    done = command_in(tmp_path)("check", "plan.yaml")
    assert "jmeter: 5.6.3" in done.stdout
    assert "it rests until the run sets its level" in done.stdout
    assert "no figure of the load" not in done.stdout
    assert not list(tmp_path.rglob("generators"))


@pytest.mark.slow
def test_calibrate_drives_it(tmp_path: Path) -> None:
    """Its ceiling is that of the level at which it sent most."""
    plan_of(tmp_path)
    done = command_in(tmp_path)("calibrate", "plan.yaml", "--levels", "100%", "--for", "15s")
    assert "tg: requests" in done.stdout, done.stdout + done.stderr


# --- what is missing, in one sentence ---------------------------------------------------------------------------


def wrong(name: str, keys: dict[str, object], folder: Path) -> str:
    """What a trial says before a run."""

    async def go() -> str:
        try:
            async with loaded(name, folder, trial=True, **keys) as poller:
                while True:
                    try:
                        await poller.poll(time.time_ns())
                    except SourceUnreadyError:
                        await asyncio.sleep(0.02)
                    else:
                        return ""
        except (SourceError, SoakwatchError) as failure:
            return str(failure)

    return asyncio.run(go())


def test_what_is_missing_is_said_before_the_run(tmp_path: Path) -> None:
    """A program, a script, a property, a level that the program does not know."""
    keys = jmeter(tmp_path)
    (tmp_path / "fixed.jmx").write_text(double.PLAN.replace("${__P(users,1)}", "10"))
    (tmp_path / "soak.txt").write_text("no plan")
    tries: list[tuple[str, dict[str, object], str]] = [
        ("jmeter", {**keys, "program": "jmeter-5"}, "jmeter-5 is not installed: install JMeter here, or set program: "),
        ("jmeter", {**keys, "program": "true"}, "true is not JMeter: set program: to the path of JMeter"),
        ("jmeter", {**keys, "script": "soak.jm"}, "script: soak.jm does not exist in "),
        ("jmeter", {**keys, "script": str(tmp_path / "soak.txt")}, "soak.txt is not a test plan of JMeter (.jmx)"),
        ("jmeter", {**keys, "script": str(tmp_path / "fixed.jmx")}, "sets no level by the run: write ${__P(users)} wh"),
        ("jmeter", {**keys, "full": "9/s"}, "write ${__P(rate)} or ${__P(rate_per_minute)} where its test plan has"),
        ("jmeter", keys, ""),
    ]
    for name, given, says in tries:
        said = wrong(name, given, tmp_path)
        assert says in said, (says, said)
        assert bool(says) == bool(said), said
        assert "\n" not in said


@pytest.mark.slow
def test_k6_tells_what_is_wrong_with_a_script(tmp_path: Path) -> None:
    """In its own words, with the line; a function that is not there, in ours."""
    script = tmp_path / "soak.js"
    keys: dict[str, object] = {"drive": True, "script": str(script), "full": "4 users", "program": needs_k6()}
    script.write_text("export default function () {\n")
    assert re.search(r"k6 refuses the script: file:\S+soak.js: Line 2:1 Unexpected", wrong("k6", keys, tmp_path))
    script.write_text(K6_SCRIPT)
    said = wrong("k6", {**keys, "function": "other"}, tmp_path)
    assert "k6 refuses the script: Error: the script exports no function other" in said
    assert wrong("k6", keys, tmp_path) == ""


def test_a_rate_needs_wrk2(tmp_path: Path) -> None:
    """wrk knows no rate; a program that does is wrk2, and needs one."""
    wrk2 = tmp_path / "wrk2"
    wrk2.write_text("#!/bin/sh\necho 'wrk 4.0.0 [epoll] Copyright (C) 2012 Will Glozer'\necho '    -R, --rate <T>'\n")
    wrk2.chmod(0o755)
    wrk = tmp_path / "wrk"
    wrk.write_text("#!/bin/sh\necho 'wrk debian/4.1.0-3 [epoll] Copyright (C) 2012 Will Glozer'\n")
    wrk.chmod(0o755)
    keys: dict[str, object] = {"drive": True, "url": "http://127.0.0.1:1/"}
    assert "takes no rate: set program: to the path of wrk2" in wrong(
        "wrk", {**keys, "full": "100/s", "program": str(wrk)}, tmp_path
    )
    assert "is wrk2, which needs a rate" in wrong(
        "wrk", {**keys, "full": "4 connections", "program": str(wrk2)}, tmp_path
    )
    assert wrong("wrk", {**keys, "full": "100/s", "program": str(wrk2)}, tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "keys", "says"),
    [
        ("k6", {}, "k6 needs file: what it writes, or drive: true to be run"),
        ("k6", {"file": "a", "drive": True}, "file and drive: true exclude each other"),
        ("k6", {"drive": True}, "drive: true needs script: and full:"),
        ("k6", {"file": "a", "full": "5/s"}, "full: these keys need drive: true"),
        ("k6", {"drive": True, "script": "a", "full": 500}, "500 does not say of what: write a rate, such as 500/s"),
        ("k6", {"drive": True, "script": "a", "full": "5 cars"}, "'5 cars' is not a load: write a rate"),
        ("k6", {"drive": True, "script": "a", "full": "0/s"}, "'0/s' sends nothing"),
        ("k6", {"drive": True, "script": "a", "full": "1.5 users"}, "write a whole number"),
        ("k6", {"drive": True, "script": "a", "full": "5 vus", "max_users": 5}, "max_users is for a rate"),
        ("k6", {"drive": True, "script": "a", "full": "5 vus", "options": ["--out=x"]}, "may not contain --out=x"),
        ("locust", {"drive": True, "script": "a", "full": "5/s"}, "cannot be driven by full: 5/s: write users"),
        ("wrk", {"drive": True, "full": "5 connections"}, "drive: true needs url:"),
        ("wrk", {"drive": True, "url": "http://a/", "full": "5/s", "each": "1500ms"}, "wrk counts whole seconds"),
    ],
)
def test_wrong_keys(name: str, keys: dict[str, object], says: str) -> None:
    """Each names the place and the remedy."""
    with pytest.raises(ValueError, match=re.escape(says)):
        poller_module(name).config.model_validate(keys)


def test_only_a_driven_one_can_be_driven(tmp_path: Path) -> None:
    """One that follows a file is not asked for a level."""
    assert K6Config.model_validate({"file": "a"}).drive is False
    assert LocustConfig.model_validate({"file": "a"}).full is None

    async def go() -> bool:
        async with loaded("k6", tmp_path, file=str(tmp_path / "k6.json")) as poller:
            return isinstance(poller, Drivable)

    assert asyncio.run(go()) is False


def test_what_was_read_is_given_back(tmp_path: Path) -> None:
    """A file that grows for a night takes some MiB, and its reader misses nothing."""
    kept = ReleasedFile(tmp_path / "generators" / "tg" / "out.csv")
    kept.renew()
    tail, lines, rounds = Tail(kept.path), 0, 12
    block = b"".join(b"%07d %s\n" % (number, b"x" * 191) for number in range(10_000))  # 2 MB
    with os.fdopen(os.open(kept.path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
        for _ in range(rounds):
            file.write(block)
            file.flush()
            while (piece := tail.read()) is not None and piece.lines:
                lines += len(piece.lines)
            assert tail.position is not None
            kept.release(tail.position)
        os.fsync(file.fileno())
    assert lines == rounds * 10_000
    assert kept.written == rounds * len(block)
    assert kept.held < 2 * STEP_BYTES, "or the program is restarted with a new file"
    old = tail.position
    tail.close()
    kept.renew()
    kept.path.write_bytes(block * 8)
    assert old is not None
    kept.release(old)
    assert kept.path.read_bytes() == block * 8, "of a file that has its name by now, nothing was read"
    kept.remove()
    assert not (tmp_path / "generators").exists()
