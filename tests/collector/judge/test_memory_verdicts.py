"""What a whole table of a device's memory is judged to be: by its shape, beside its processes, on a shared machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.api import judge_csv
from soakwatch.cli.main import run as command
from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.judge.adjudicate.memory import of_shared_hosts
from soakwatch.judge.planned import SHARED_KEY, shared_hosts, shared_text
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import plan_from_text, plan_text, quick_plan
from soakwatch.record import Record, RecordView
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

Floats = NDArray[np.float64]
MIB = 2.0**20
CADENCE_S = 120


def hours(length: float = 24.0) -> Floats:
    """Hours since the begin."""
    return np.arange(int(length * 3600 / CADENCE_S), dtype=np.float64) * CADENCE_S / 3600


def night(seed: int, length: float = 24.0, **more: Floats) -> dict[str, Floats]:
    """A healthy device: a cache that fills until half of the run, a worker with one step, a proxy with a daily wave;
    the machine's memory is their sum. ``more`` is added to what is so called, in MiB."""
    rng, t = np.random.default_rng(seed), hours(length)

    def around(level: float) -> Floats:
        values: Floats = level * (1 + rng.normal(0, 0.004, t.size))
        return values

    held = {
        "cache": around(3000) - 1200 * np.clip(1 - t / (0.5 * length), 0, None),
        "worker": around(400) + 32 * (t > 0.6 * length),
        "proxy": around(250) + 5 * np.sin(2 * np.pi * t / 24),
    }
    held = {name: value + more.get(name, np.zeros(t.size)) for name, value in held.items()}
    system = around(900) + more.get("kernel", np.zeros(t.size))
    used = sum(held.values(), system)
    columns = {f"process.memory.usage{{process={name}}}": value * MIB for name, value in held.items()}
    return {
        **columns,
        "system.memory.usage": used * MIB,
        "system.memory.available": (16384 - used) * MIB,
        "system.memory.committed": (1.3 * used + 500) * MIB,
    }


def written(folder: Path, columns: Mapping[str, Floats]) -> Path:
    """The table of a run."""
    path = folder / "night.csv"
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(["time", *columns])]
    lines += [",".join([str(1_700_000_000 + CADENCE_S * i), *(f"{x:.0f}" for x in row)]) for i, row in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def verdict(folder: Path, columns: Mapping[str, Floats], **parameters: Mapping[str, float | str]) -> Verdict:
    """What all rules together say of it."""
    return judge_csv(written(folder, columns), parameters=parameters, on_note=lambda _: None)


def finding_of(judged: Verdict, rule: str, metric: str, object_: str = "") -> Finding:
    """The finding of a rule of one series."""
    return next(f for f in judged.findings if (f.rule, f.metric) == (rule, metric) and object_ in f.object)


def test_a_healthy_night_passes_and_the_literal_method_warns(tmp_path: Path) -> None:
    """A cache that filled and stays is literally growth: a warning that says both, and the command passes."""
    assert command(["judge", str(written(tmp_path, night(1)))]) == EXIT_PASS
    judged = verdict(tmp_path, night(1))
    finding = finding_of(judged, "memory_growth", "process.memory.usage", "cache")
    assert finding.outcome is Outcome.WARN
    assert "but it does not grow at the end (rule growth: " in finding.sentence
    assert finding.numbers["change"] > 0.05
    whole = finding_of(judged, "memory_growth", "system.memory.usage")
    assert whole.outcome is Outcome.PASS
    assert "cache (+" in whole.sentence


@pytest.mark.parametrize("seed", range(4))
def test_a_leaking_process_fails_and_explains_the_machine(tmp_path: Path, seed: int) -> None:
    """Both methods fail the process; the machine's memory only warns, and names it."""
    judged = verdict(tmp_path, night(seed, worker=250 * hours() / 24))
    assert judged.outcome is Outcome.FAIL
    assert finding_of(judged, "growth", "process.memory.usage", "worker").outcome is Outcome.FAIL
    assert finding_of(judged, "memory_growth", "process.memory.usage", "worker").outcome is Outcome.FAIL
    assert {f.object for f in judged.findings if f.outcome is Outcome.FAIL} == {"process=worker,instance=0"}
    large = verdict(tmp_path, night(seed, worker=1500 * hours() / 24))
    whole = finding_of(large, "growth", "system.memory.usage")
    assert whole.outcome is Outcome.WARN
    assert "worker (+1." in whole.sentence


def test_what_no_process_explains_fails(tmp_path: Path) -> None:
    """A leak of the kernel's is seen in the sums beside their processes, which all pass."""
    judged = verdict(tmp_path, night(2, kernel=700 * hours() / 24))
    for metric in ("system.memory.usage", "system.memory.available"):
        finding = finding_of(judged, "growth", metric)
        assert finding.outcome is Outcome.FAIL
    assert all("system." in f.metric for f in judged.findings if f.outcome is Outcome.FAIL)


def test_the_literal_method_decides_where_it_is_asked_to(tmp_path: Path) -> None:
    """By its parameter, by itself on the command line, and where the run is too short for the shape."""
    assert verdict(tmp_path, night(1), memory_growth={"method": "stages"}).outcome is Outcome.FAIL
    path = str(written(tmp_path, night(1)))
    assert command(["judge", path, "--rule", "memory_growth"]) == EXIT_FAIL
    short = verdict(tmp_path, {"process.memory.usage{process=web}": (200 + 60 * hours(1.5)) * MIB})
    assert finding_of(short, "growth", "process.memory.usage").outcome is Outcome.INCONCLUSIVE
    assert finding_of(short, "memory_growth", "process.memory.usage").outcome is Outcome.FAIL
    assert short.outcome is Outcome.FAIL


def test_what_was_freed_inside_the_run_is_reported(tmp_path: Path) -> None:
    """A leak of 5 GiB that was freed at noon is no silent pass, and names the moment."""
    t = hours()
    judged = verdict(tmp_path, night(3, cache=5000 * (t / 12) * (t < 12)))
    finding = finding_of(judged, "growth", "process.memory.usage", "cache")
    assert finding.outcome is Outcome.WARN
    assert ", released at 2023-11-15 10:" in finding.sentence


def test_a_peak_near_the_limit_is_reported(tmp_path: Path) -> None:
    """Memory that came within 5 % of what there is, for an hour, is a warning although nothing grows."""
    t = hours()
    peak: Floats = np.where((t > 8) & (t < 9), 11_600.0, 0.0)
    columns = night(4, cache=peak) | {"system.memory.limit": np.full(t.size, 16384 * MIB)}
    finding = finding_of(verdict(tmp_path, columns), "growth", "system.memory.usage")
    assert finding.outcome is Outcome.WARN
    assert "memory in use reached 15." in finding.sentence
    assert "of 16 GiB" in finding.sentence


def test_the_bar_follows_the_number_of_series(tmp_path: Path) -> None:
    """The finding says among how many series it was judged, and from which probability on it fails."""
    judged = verdict(tmp_path, night(1))
    finding = finding_of(judged, "growth", "system.memory.usage")
    assert "one of 6 series judged by this rule in the run, so it fails from 99.17 % on (Bonferroni)" in (
        finding.definition
    )


def finding(rule: str, metric: str, outcome: Outcome) -> Finding:
    """A finding of one rule."""
    return Finding(rule, 1, outcome, "box", metric, "", Window(0, 10**9), "definition", "it grows", 10)


def test_a_shared_machine_is_not_the_device() -> None:
    """Where processes are watched its sums warn at most and hold nothing up; without any, growth decides of it."""
    watched = finding("growth", "process.memory.usage", Outcome.FAIL)
    sums = [
        finding("growth", "system.memory.usage", Outcome.FAIL),
        finding("memory_growth", "system.memory.committed", Outcome.FAIL),
        finding("growth", "system.memory.swap.usage", Outcome.INCONCLUSIVE),
    ]
    findings = of_shared_hosts([watched, *sums], {"box"})
    assert [f.outcome for f in findings] == [Outcome.FAIL, Outcome.WARN, Outcome.WARN, Outcome.NOT_APPLICABLE]
    assert "other programs run on this machine too" in findings[1].sentence
    assert of_shared_hosts([watched, *sums], set()) == [watched, *sums]
    alone = of_shared_hosts(sums, {"box"})
    assert [f.outcome for f in alone] == [Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE]


def test_a_quick_plan_of_this_machine_shares_it(tmp_path: Path) -> None:
    """``run --process X`` says so in the plan that the record keeps; an address of a device does not."""
    plan = quick_plan(("local",), ("nginx",), duration="30s")
    assert [target.shared for target in plan.targets] == [True]
    assert [target.shared for target in plan_from_text(plan_text(plan), "record").targets] == [True]
    there = quick_plan(("ssh://soak@fw1",), ("nginx",), duration="30s")
    assert [target.shared for target in there.targets] == [False]
    assert json.loads(shared_text(t.name for t in plan.targets if t.shared)) == ["local"]
    with Record.create(tmp_path / "run") as record:
        record.set_meta(SHARED_KEY, shared_text(["local"]))
    with RecordView.open(tmp_path / "run") as view:
        assert shared_hosts(view) == {"local"}


def test_a_program_that_is_warm_by_its_last_third_is_no_failure_of_a_short_run(tmp_path: Path) -> None:
    """Too short for the shape: the literal method fails what still rises, and warns of what came to rest."""
    t = hours(1.5)
    for value, outcome in (
        (200 + 60 * (1 - np.exp(-t / 0.2)), Outcome.WARN),
        (200 + 60 * np.minimum(t / 0.9, 1.0), Outcome.WARN),
        (200 + 60 * (t > 0.75).astype(np.float64), Outcome.WARN),
        (200 + 60 * t, Outcome.FAIL),
        (200 + 400 * np.maximum(t - 0.9, 0), Outcome.FAIL),
    ):
        judged = verdict(tmp_path, {"process.memory.usage{process=web}": value * MIB})
        assert finding_of(judged, "memory_growth", "process.memory.usage").outcome is outcome
        assert (judged.outcome is Outcome.FAIL) == (outcome is Outcome.FAIL)


_STEP = (570 * 0.45, 1.09)  # when, and by how much


@pytest.mark.parametrize(
    ("course", "outcome"),
    [
        ("doubles in a minute and stays", Outcome.FAIL),
        ("the same as the load begins", Outcome.WARN),
        ("leaks until it is full", Outcome.FAIL),
        ("leaks, and is ended", Outcome.FAIL),
        ("trebles as it starts", Outcome.WARN),
        ("a cache of thrice its size fills", Outcome.WARN),
        ("a cache fills, and the program is ended", Outcome.WARN),
    ],
)
def test_what_no_start_up_does_fails_a_run_of_ten_minutes(tmp_path: Path, course: str, outcome: Outcome) -> None:
    """Too short for the shape: where the rise begins, how large it is and what came then tell a leak from a start."""
    t, rng = np.arange(570.0), np.random.default_rng(3)
    later = np.clip((t - _STEP[0]) / 60, 0, 1) * _STEP[1]
    rises = {
        "doubles in a minute and stays": later,
        "the same as the load begins": later,
        "leaks until it is full": 20 * np.minimum(t / 350, 1),
        "leaks, and is ended": 0.6 * t / 570 * (t < 545),
        "trebles as it starts": 2 * (1 - np.exp(-t / 95)),
        "a cache of thrice its size fills": 2 * np.minimum(t / 340, 1),
        "a cache fills, and the program is ended": 0.6 * np.minimum(t / 340, 1) * (t < 555),
    }
    columns = {"system.memory.usage": 900 * MIB * (1 + rises[course]) * (1 + rng.normal(0, 0.003, t.size))}
    if course == "the same as the load begins":
        columns["load.request.rate"] = 200 + 800 * np.clip((t - _STEP[0]) / 10, 0, 1) + rng.normal(0, 5, t.size)
    lines = [",".join([f"{1_763_200_000 + t[i]:.0f}", *(f"{v[i]:.0f}" for v in columns.values())]) for i in range(570)]
    table, file = tmp_path / "short.csv", tmp_path / "verdict.json"
    table.write_text("\n".join([",".join(["time", *columns]), *lines]) + "\n", encoding="utf-8")
    code = command(["judge", str(table), "--json", str(file)])
    said = [f for f in json.loads(file.read_text())["findings"] if f["rule"] == "memory_growth"]
    assert [f["outcome"] for f in said] == [outcome.value]
    assert (code == EXIT_FAIL) == (outcome is Outcome.FAIL)


@pytest.mark.parametrize("leak_mib", [2.0, 4.0])
@pytest.mark.parametrize(
    ("metric", "per_s"),
    [
        ("load.request.rate", 1e3),
        ("load.requests", 1e3),
        ("load.tx.packets", 1e3),
        ("load.tx.packet.rate", 1e3),
        ("load.tx.bytes", 1e6),
        ("load.tx.bit.rate", 8e6),
        ("load.offered.bit.rate", 8e6),
        ("load.connection.rate", 1e2),
    ],
)
def test_the_unit_in_which_a_generator_counts_is_indifferent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str, per_s: float, leak_mib: float
) -> None:
    """A leak in memory that follows its load, half a day long: the load is taken out of it, however it is told."""
    rng, n = np.random.default_rng(1), 12 * 120
    t = np.arange(n) / n
    shape = 1 + 0.5 * np.sin(2 * np.pi * (0.6 * t - 0.1)) + np.repeat(rng.normal(0, 0.12, n // 20), 20)
    memory = 2e8 + 4e7 * shape + rng.normal(0, 2e5, n) + leak_mib * MIB * 12 * t
    counts = not metric.endswith("rate")
    load = np.cumsum(30 * per_s * shape) if counts else per_s * shape
    rows = "".join(f"{1767225600 + 30 * i},{memory[i]:.0f},{load[i]:.3f}\n" for i in range(n))
    (tmp_path / "night.csv").write_text(f"time,mem,load\n{rows}", encoding="utf-8")
    words = ["--map", "mem=process.memory.usage,process=x:B", "--map", f"load={metric}"]
    assert command(["judge", str(tmp_path / "night.csv"), *words]) == EXIT_FAIL
    assert f"memory of x on night has grown by {leak_mib:.0f}" in capsys.readouterr().out


@pytest.mark.parametrize(("a_day", "code"), [(0.87, EXIT_INCONCLUSIVE), (0.0, EXIT_PASS)])
def test_a_leak_in_86_minutes_is_a_suspicion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], a_day: float, code: int
) -> None:
    """Two hours were not there, so nothing failed; but a straight rise of 87 % a day is no pass, and is named."""
    seconds = np.arange(0, 86 * 60, 10.0)
    rng = np.random.default_rng(1)
    held = 500 * MIB * (1 + a_day * seconds / 86400 + 0.002 * rng.normal(size=seconds.size))
    lines = [f"{1_763_200_000 + at:.0f},{value:.0f}" for at, value in zip(seconds, held, strict=True)]
    table, judged = tmp_path / "table.csv", tmp_path / "verdict.json"
    table.write_text("\n".join(["time,system.memory.usage", *lines]) + "\n", encoding="utf-8")
    assert command(["judge", str(table), "--json", str(judged)]) == code
    shown = capsys.readouterr().out
    (found,) = (f for f in json.loads(judged.read_text())["findings"] if f["rule"] == "growth")
    assert (found["outcome"], found["why"]) == ("inconclusive", "too short")
    assert ("grows by" in found["reason"]) == (code == EXIT_INCONCLUSIVE)
    assert "2 h needed" in found["reason"]
    assert "Nothing to do" not in shown
