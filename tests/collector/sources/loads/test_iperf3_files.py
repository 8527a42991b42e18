"""The load ``iperf3``: files that grow, plans that are refused, and whole runs as commands."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.collector.sources.loads.iperf3_kit import (
    clients_of,
    command,
    figures,
    loaded,
    needs_iperf3,
    readings,
    run_plan,
)

from soakwatch.record import RecordView
from soakwatch.sources.abc import Drivable, SourceError
from soakwatch.sources.loads.iperf3 import Config
from soakwatch_testing import iperf3_double as double
from soakwatch_testing.ports import free_port


def write(file: Path, *lines: str) -> None:
    """More lines."""
    with file.open("a") as opened:
        opened.write("".join(f"{line}\n" for line in lines))


def test_a_file_that_grows(tmp_path: Path) -> None:
    """What it held before the run sets the account and is no sample; a new file of the same name is a restart."""
    file, streams = tmp_path / "iperf3.json", 3
    begun = double.event("start", double.start(streams=streams))
    write(file, begun, double.event("interval", double.interval(0, 1, sender=True, packets=100, streams=streams)))

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(file)) as poller:
            assert not isinstance(poller, Drivable)
            first = figures(await poller.poll(time.time_ns()))
            assert first == {
                ("load.sending", ""): 1,
                ("load.lines.unread", ""): 0,
                ("load.offered.bit.rate", ""): 24e6,
                ("load.offered.packet.rate", ""): 3000,
            }
            write(
                file,
                *(
                    double.event("interval", double.interval(second, second + 1, sender=True, packets=100, streams=3))
                    for second in (1, 2)
                ),
            )
            now = time.time_ns()
            answer = await poller.poll(now)
            sent = [(sample.time_ns, sample.value) for sample in answer.samples if sample.metric == "load.tx.packets"]
            assert [value for _, value in sent] == [600, 900]
            assert sent[-1][0] <= now
            file.unlink()
            with pytest.raises(SourceError, match="was removed"):
                await poller.poll(time.time_ns())
            write(file, begun, double.event("interval", double.interval(0, 1, sender=True, packets=50, streams=3)))
            answer = await poller.poll(time.time_ns())
            assert figures(answer)["load.tx.packets", ""] == 150
            assert [event.kind for event in answer.events] == ["generator.restart"]
            write(file, double.event("end", double.end(1, packets=160)))
            ended = figures(await poller.poll(time.time_ns()))
            assert ended["load.sending", ""] == 0
            assert ended["load.tx.packets", ""] == 160
            assert ("load.offered.bit.rate", "") not in ended

    asyncio.run(go())


def test_a_file_that_does_not_grow_or_is_missing(tmp_path: Path) -> None:
    """A test under way that writes nothing has failed; a file that never comes is reported after its time."""
    file, now = tmp_path / "iperf3.json", time.time_ns()

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(file), wait="5s") as poller:
            assert (await poller.poll(now)).samples == ()
            with pytest.raises(SourceError, match="does not exist"):
                await poller.poll(now + 6 * 10**9)
            write(file, double.event("start", double.start()))
            assert figures(await poller.poll(now + 7 * 10**9))["load.sending", ""] == 1
            await poller.poll(now + 16 * 10**9)
            with pytest.raises(SourceError, match="nothing was written for 11 s"):
                await poller.poll(now + 18 * 10**9)
            write(file, double.event("end", double.end(1, packets=1)))
            assert figures(await poller.poll(now + 40 * 10**9))["load.sending", ""] == 0
            assert figures(await poller.poll(now + 90 * 10**9))["load.tx.packets", ""] == 1

    asyncio.run(go())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """One sentence."""

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(tmp_path)) as poller:
            with pytest.raises(SourceError, match="is not a regular file"):
                await poller.poll(time.time_ns())

    asyncio.run(go())


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({}, "needs one of file"),
        ({"serve": True, "file": "x"}, "keep one of file, serve"),
        ({"drive": True}, "needs server"),
        ({"serve": True, "rate": "1M"}, "rate: these keys need drive: true"),
        ({"drive": True, "server": "h", "udp": True}, "udp: true needs rate"),
        ({"drive": True, "server": "h", "reverse": True, "bidir": True}, "keep one of them"),
        ({"drive": True, "server": "h", "rate": "fast"}, "'fast' is not a rate"),
        ({"drive": True, "server": "h", "rate": 0}, "greater than 0"),
        ({"drive": True, "server": "h", "options": ["-t", "5"]}, "options may not contain -t"),
        ({"drive": True, "server": "-x h"}, "a host is a name"),
    ],
)
def test_plans_that_are_refused(keys: dict[str, object], says: str) -> None:
    """What cannot be meant is reported before the run."""
    with pytest.raises(ValueError, match=re.escape(says)):
        Config.model_validate(keys)


def test_a_check_before_the_run_starts_nothing(tmp_path: Path) -> None:
    """``check`` and ``probe`` do not send, and do not start what a run would."""
    mark, stand_in = tmp_path / "mark", str(double.script(tmp_path))

    async def go() -> None:
        async with loaded("iperf3", tmp_path, trial=True, run=["touch", str(mark)]) as poller:
            await poller.poll(time.time_ns())
        async with loaded("iperf3", tmp_path, trial=True, drive=True, server="h", program=stand_in) as poller:
            assert figures(await poller.poll(time.time_ns()))["load.sending", ""] == 0

    asyncio.run(go())
    assert not mark.exists()


@pytest.mark.slow
@needs_iperf3
def test_a_whole_run(tmp_path: Path) -> None:
    """A server that is kept, and a client as a command whose document comes at its end: both are in the record."""
    port = free_port()
    words = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-u", "-b", "4M", "-l", "1000", "-t", "2", "-J"]
    late = ["sh", "-c", f"sleep 0.5; exec {' '.join(words)}"]
    sources: dict[str, list[dict[str, object]]] = {
        "sink": [{"iperf3": {"serve": True, "port": port}}],
        "tg": [{"iperf3": {"run": late}}],
    }
    run = run_plan(tmp_path, sources, "6s")
    sent = readings(run, "tg", "load.tx.packets")
    got = readings(run, "sink", "load.rx.packets")
    assert sent[0] == got[0] == 0
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(1000, abs=10)
    assert got[-1] + readings(run, "sink", "load.lost.packets")[-1] == pytest.approx(sent[-1], abs=10)
    assert max(readings(run, "sink", "load.sending")) == 1
    assert readings(run, "tg", "load.sending")[-1] == 0
    with RecordView.open(run) as view:
        ledgers = {ledger.target: ledger for ledger in view.ledgers(view.window()) if ledger.target in ("tg", "sink")}
    assert set(ledgers) == {"tg", "sink"}
    assert [ledger.errors for ledger in ledgers.values() if "failed" in ledger.lost] == []


@pytest.mark.slow
@needs_iperf3
def test_a_whole_run_that_drives(tmp_path: Path) -> None:
    """Phases set the level; the generator's counters go on over them, and match what it was set to."""
    port = free_port()
    client = {"drive": True, "server": "127.0.0.1", "port": port, "rate": "4M", "udp": True, "length": 1000}
    sources: dict[str, list[dict[str, object]]] = {
        "sink": [{"iperf3": {"serve": True, "port": port, "interval": "500ms"}}],
        "tg": [{"iperf3": {**client, "interval": "500ms"}}],
    }
    phases = [
        {"baseline": {"for": "1s", "load": 0}},
        {"soak": {"for": "3s", "load": "100%"}},
        {"stress": {"for": "3s", "load": "200%"}},
        {"recovery": {"for": "2s", "load": 0}},
    ]
    run = run_plan(tmp_path, sources, "9s", phases=phases)
    assert clients_of(port) == []
    sent = readings(run, "tg", "load.tx.packets")
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(500 * 3 + 1000 * 3, rel=0.15)
    assert readings(run, "sink", "load.rx.packets")[-1] == pytest.approx(sent[-1], abs=200)
    assert sorted(set(readings(run, "tg", "load.level"))) == [0, 1, 2]
    assert sorted(set(readings(run, "tg", "load.offered.packet.rate"))) == [0, 500, 1000]
    assert readings(run, "sink", "load.offered.packet.rate") == [], "what is offered is told once"
    assert sorted(set(readings(run, "tg", "load.sending"))) == [0, 1]
    findings = json.loads((run / "verdict.json").read_text())["findings"]
    (healthy,) = [each for each in findings if each["rule"] == "generator_health" and each["target"] == "tg"]
    assert "counters never fell" in healthy["reason"] or "commanded" in healthy["reason"], healthy


@pytest.mark.slow
def test_a_whole_run_follows_a_file(tmp_path: Path) -> None:
    """The lines that come during a run are in its record, and what cannot be read is reported."""
    file = tmp_path / "stream.json"
    writer = (
        "import sys, time\nfrom pathlib import Path\nfrom soakwatch_testing import iperf3_double as double\n"
        "file = open(sys.argv[1], 'a', buffering=1)\nprint(double.event('start', double.start()), file=file)\n"
        "for at in range(40):\n    time.sleep(0.25)\n    print('garbage' if at == 9 else double.event('interval',"
        " double.interval(at / 4, at / 4 + 0.25, sender=True, packets=250)), file=file)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", writer, str(file)])
    try:
        run = run_plan(tmp_path, {"tg": [{"iperf3": {"file": str(file)}}]}, "5s")
    finally:
        process.kill()
        process.wait()
    sent = readings(run, "tg", "load.tx.packets")
    assert sent[-1] >= 2000
    assert all(step in (0, 250) for step in map(float.__sub__, sent[1:], sent[:-1]))
    assert readings(run, "tg", "load.lines.unread")[-1] == 1


def test_a_wrong_plan_is_reported_with_its_position(tmp_path: Path) -> None:
    """As all plans are."""
    generator = {"role": "generator", "sources": [{"iperf3": {"drive": True}}]}
    plan = {"name": "x", "duration": "5s", "targets": {"tg": generator, "dut": {"sources": ["local"]}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    done = command(tmp_path, "run", "plan.yaml")
    assert done.returncode == 2
    assert "drive: true needs server" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    done = command(tmp_path, "loads", "iperf3")
    assert done.returncode == 0
    assert "drive" in done.stdout
