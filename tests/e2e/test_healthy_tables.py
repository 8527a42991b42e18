"""Healthy runs of odd cadence, length or make end in a pass, by the command that users call."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soakwatch.cli.main import run

T0 = 1_763_200_000
MIB = 2**20


def lines(length_s: float, every_s: float, seed: int = 3) -> Iterator[str]:
    """A long table of a healthy device: CPU, memory, two processes and an interface."""
    chance = random.Random(seed)
    yield "time,target,metric,object,value,unit"
    for n in range(max(2, round(length_s / every_s))):
        prefix = f"{T0 + n * every_s:.3f},fw,"
        yield f"{prefix}system.cpu.utilization,,{30 + chance.gauss(0, 3):.3f},%"
        yield f"{prefix}system.memory.usage,,{2000 + chance.gauss(0, 2):.2f},MiB"
        yield f"{prefix}system.uptime,,{9e5 + n * every_s:.1f},s"
        yield f'{prefix}system.network.packet.dropped,"interface=eth0,direction=receive",0,'
        for k in range(2):
            process = f'"process=p{k},instance=0"'
            yield f"{prefix}process.memory.usage,{process},{200 + chance.gauss(0, 0.5):.2f},MiB"
            yield f"{prefix}process.start_time,{process},{T0 - 9999},s"
            yield f"{prefix}process.open_files,{process},{chance.randint(28, 32)},"


def verdict(tmp_path: Path, text: Iterator[str], *words: str) -> dict[str, Any]:
    """What the command says of a table."""
    (tmp_path / "run.csv").write_text("\n".join(text) + "\n", encoding="utf-8")
    run(["judge", str(tmp_path / "run.csv"), *words, "--json", str(tmp_path / "verdict.json")])
    verdict: dict[str, Any] = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    return verdict


@pytest.mark.parametrize(
    ("length_s", "every_s"),
    [(30, 0.2), (30, 1), (300, 1), (600, 10), (3600, 60), (86_400, 3600), (172_800, 3600)],
)
def test_a_healthy_run_passes_by_default(tmp_path: Path, length_s: float, every_s: float) -> None:
    judged = verdict(tmp_path, lines(length_s, every_s))
    assert judged["verdict"] == "pass", judged["reason"]


def test_a_rule_that_is_named_must_decide(tmp_path: Path) -> None:
    """An hourly reading shows no spike of seconds: who asks for just that gets no assurance that there was none."""
    assert verdict(tmp_path, lines(86_400, 3600), "--rule", "cpu_spike")["verdict"] == "inconclusive"


def test_an_hourly_leak_fails(tmp_path: Path) -> None:
    judged = verdict(
        tmp_path,
        (
            f"{line.rsplit(',', 2)[0]},{200 + 1.5 * number / 8:.2f},MiB"
            if "process=p1" in line and "memory" in line
            else line
            for number, line in enumerate(lines(86_400, 3600))
        ),
    )
    assert judged["verdict"] == "fail"


def test_what_comes_and_goes_holds_nothing_up(tmp_path: Path) -> None:
    """Interfaces of containers, a VPN and workers that live for minutes or hours of a night."""
    chance = random.Random(9)

    def text() -> Iterator[str]:
        yield from lines(43_200, 60)
        for k in range(12):
            born = chance.randrange(0, 600)
            for n in range(born, min(720, born + chance.choice([1, 5, 60, 400]))):
                prefix = f"{T0 + n * 60:.3f},fw,"
                yield f'{prefix}system.network.packet.dropped,"interface=veth{k},direction=receive",0,'
                yield f'{prefix}process.memory.usage,"process=worker,instance={k}",{30 + chance.gauss(0, 0.1):.3f},MiB'

    judged = verdict(tmp_path, text())
    assert judged["verdict"] == "pass", judged["reason"]


def test_a_worker_that_leaks_in_its_life_fails(tmp_path: Path) -> None:
    """Judged from its birth to its death: eight hours of a night of twelve are enough to see it grow."""

    def text() -> Iterator[str]:
        yield from lines(43_200, 60)
        for n in range(180, 660):
            prefix = f"{T0 + n * 60:.3f},fw,"
            yield f'{prefix}process.memory.usage,"process=worker,instance=0",{30 + n / 10:.3f},MiB'

    assert verdict(tmp_path, text())["verdict"] == "fail"


def test_a_device_whose_readings_stop_is_no_short_life(tmp_path: Path) -> None:
    """The CPU of a device does not come and go: half a night of it is missing, not dead."""
    kept = (line for number, line in enumerate(lines(43_200, 60)) if number < 3000 or "system.cpu" not in line)
    assert verdict(tmp_path, kept)["verdict"] == "inconclusive"


def test_readings_written_by_events_have_no_gaps(tmp_path: Path) -> None:
    """A heap after each collection: no line was due at any time, so none is missing."""
    chance = random.Random(5)

    def text() -> Iterator[str]:
        yield "time,target,metric,object,value,unit"
        time_s = float(T0)
        for _ in range(400):
            time_s += chance.expovariate(1 / 116)
            yield f'{time_s:.3f},jvm,process.memory.usage,"process=java,instance=0",{200 + chance.gauss(0, 1):.3f},MiB'

    judged = verdict(tmp_path, text())
    assert judged["verdict"] == "pass", judged["reason"]
    outcomes = {finding["rule"]: finding["outcome"] for finding in judged["findings"]}
    assert (outcomes["coverage"], outcomes["gap"]) == ("not applicable", "not applicable")
