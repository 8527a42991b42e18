"""A device whose rows are missing while others go on did not answer; where all stop at once, the monitor stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soakwatch.cli.main import run

T0 = 1_767_225_600
HOUR = 3600
Row = tuple[float, str, str, str, float]
Keep = Callable[[float], bool]


def rows(target: str, at: Iterable[float], keep: Keep = lambda _: True) -> list[Row]:
    """CPU, memory and uptime of a device, read at these seconds where they are kept."""
    out: list[Row] = []
    for n, second in enumerate(at):
        if keep(second):
            out.append((second, target, "system.cpu.utilization", "", 0.2 + 0.01 * (n % 3)))
            out.append((second, target, "process.memory.usage", "process=bgpd", 5e7 + 4096 * (n % 2)))
            out.append((second, target, "system.uptime", "", 9e6 + second))
    return out


def load(at: Iterable[float], back: Callable[[float], float] = lambda _: 1.0) -> list[Row]:
    """Packets of a generator, of which a share comes back."""
    out: list[Row] = []
    sent = came = last = 0.0
    for second in at:
        sent += 1000 * (second - last)
        came += 1000 * (second - last) * back(second)
        last = second
        out += [(second, "tg", "load.tx.packets", "", sent), (second, "tg", "load.rx.packets", "", round(came))]
    return out


def judged(folder: Path, tables: Mapping[str, list[Row]], *words: str) -> dict[str, Any]:
    """The verdict of long tables, through the commands."""
    for name, some in tables.items():
        lines = [f"{T0 + s},{t},{m},{o},{v}" for s, t, m, o, v in sorted(some)]
        (folder / name).write_text("\n".join(["time,target,metric,object,value", *lines]), encoding="utf-8")
    files, out = [str(folder / name) for name in tables], folder / "verdict.json"
    generates = any(row[1] == "tg" for some in tables.values() for row in some)
    given = ["--runs", str(folder / "runs"), *(["--role", "tg=generator"] if generates else []), *words]
    assert run(["import", *files, "--name", "night", *given]) in {0, 1, 3}
    run(["judge", str(next((folder / "runs").iterdir())), "--json", str(out)])
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def said(document: dict[str, Any], rule: str, target: str = "dut") -> dict[str, Any]:
    """The finding of a rule about a target."""
    found = [f for f in document["findings"] if f["rule"] == rule and f["target"] == target]
    assert len(found) == 1, [f["rule"] for f in document["findings"]]
    finding: dict[str, Any] = found[0]
    return finding


def test_a_device_that_is_dead_to_the_end_hangs(tmp_path: Path) -> None:
    """Nothing of it is in the last 115 min, and nothing of the load comes back: dead from that moment on, by name."""
    dies = 5 * HOUR
    at = range(0, 7 * HOUR, 60)
    table = [*rows("dut", at, lambda s: s < dies), *load(at, lambda s: 1.0 if s < dies else 0.0)]
    document = judged(tmp_path, {"night.csv": table})
    hang = said(document, "hang")
    assert (document["verdict"], hang["outcome"]) == ("fail", "fail")
    assert "has not answered since 2026-01-01 04:59:00 UTC (to the end of the run)" in hang["reason"]
    assert "119 failed" in said(document, "coverage")["reason"]
    assert said(document, "gap")["outcome"] == "warn"


def test_a_hole_in_a_device_is_its_silence(tmp_path: Path) -> None:
    """Twenty minutes without a row of it, in which its packets are lost: a hang; the monitor had read the generator."""
    at = range(0, 4 * HOUR, 10)
    hole = range(2 * HOUR, 2 * HOUR + 1200)
    table = [*rows("dut", at, lambda s: s not in hole), *load(at, lambda s: 0.0 if s in hole else 1.0)]
    document = judged(tmp_path, {"night.csv": table})
    hang = said(document, "hang")
    assert (document["verdict"], hang["outcome"]) == ("fail", "fail")
    assert "1 hang: 2026-01-01 01:59:50 UTC for 20 min" in hang["reason"]
    assert "the monitor did not send" not in said(document, "gap")["reason"]
    assert "120 failed" in said(document, "coverage")["reason"]


def test_a_hole_in_all_is_the_monitor_s(tmp_path: Path) -> None:
    """Nothing of anybody is there for 20 min: the monitor stood, nobody hung, and that is said."""
    at = [s for s in range(0, 4 * HOUR, 10) if s not in range(2 * HOUR, 2 * HOUR + 1200)]
    shifted = [s + 3 for s in at]  # the generator is read a moment later
    document = judged(tmp_path, {"night.csv": [*rows("dut", at), *rows("sw", at), *load(shifted)]})
    assert document["verdict"] == "inconclusive"
    for target in ("dut", "sw"):
        assert said(document, "hang", target)["outcome"] == "pass"
        assert "the monitor did not send its polls" in said(document, "gap", target)["reason"]
        reason = said(document, "coverage", target)["reason"]
        assert re.search(r"1(19|20) due while the monitor was not running", reason)


def test_what_comes_later_and_what_goes_alone_is_no_hang(tmp_path: Path) -> None:
    """A device that is added after an hour, and one process whose rows end while others of its device go on."""
    at = range(0, 3 * HOUR, 60)
    late = rows("sw", at, lambda s: s >= HOUR)
    table = [row for row in rows("dut", at) if row[3] == "" or row[0] < HOUR]
    document = judged(tmp_path, {"night.csv": [*table, *late, *load(at)]})
    for target in ("dut", "sw"):
        assert said(document, "hang", target)["outcome"] == "pass"
        assert "failed" not in said(document, "coverage", target)["reason"]
        assert said(document, "gap", target)["outcome"] == "pass"
    assert said(document, "coverage")["outcome"] == "pass"


@pytest.mark.parametrize("apart", [10, 3600])
def test_an_uneven_and_a_slow_pace_hide_no_death(tmp_path: Path, apart: int) -> None:
    """Readings that come up to 20 % early or late, and one an hour: the death of a device among others is named."""
    rng = np.random.default_rng(3)
    at = apart * (np.arange(120 if apart == 10 else 30) + rng.uniform(-0.2, 0.2, 120 if apart == 10 else 30))
    dies = 0.6 * float(at[-1])
    alone = {"night.csv": [*rows("dut", at.tolist(), lambda s: s < dies), *rows("sw", at.tolist())]}
    document = judged(tmp_path, alone)
    assert said(document, "hang")["outcome"] == "fail"
    assert "to the end of the run" in said(document, "hang")["reason"]
    assert said(document, "hang", "sw")["outcome"] == "pass"


def test_files_that_end_before_others(tmp_path: Path) -> None:
    """A file of a device that ends before another device's says nothing; before the generator's, of which nothing
    comes back then, it is dead; a generator may end when it is done."""
    at = range(0, 2 * HOUR, 30)
    two = {"a.csv": rows("dut", at, lambda s: s < HOUR), "b.csv": rows("sw", at)}
    document = judged(tmp_path, two)
    assert said(document, "hang")["outcome"] == "pass"
    dead = {"a.csv": two["a.csv"], "tg.csv": load(at, lambda s: 1.0 if s < HOUR else 0.0)}
    (tmp_path / "dead").mkdir()
    assert said(judged(tmp_path / "dead", dead), "hang")["outcome"] == "fail"
    (tmp_path / "done").mkdir()
    done = judged(tmp_path / "done", {"night.csv": [*rows("dut", at), *load(range(0, HOUR, 30))]})
    assert "failed" not in said(done, "coverage", "tg")["reason"]
