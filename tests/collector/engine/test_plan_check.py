"""The check before the run: what answers, what does not, and what the plan's cadence can show."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from soakwatch.core.registry import PluginFolder, Registry
from soakwatch.engine import plan_check
from soakwatch.engine.plan_check import absent_processes, by_metric, check_sources, disk_bytes, free_bytes
from soakwatch.engine.sensitivity import growth_sentence, judged_s, sensitivity, spike_sentence, trend_sentence
from soakwatch.plan import plan_from_text
from soakwatch_testing.virtual import VirtualTime

TINY = Registry(
    PluginFolder("plugin_folders.pollers", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.detectors", "rule"),
)
TEXT = """\
phases: [{baseline: 10m}, {soak: 30m}, {stress: 10m}, {soak: 10m}]
targets:
  dut:
    sources: [{probe: {interval: 200ms}}, {locked: {host: device, password: env:SOAK_TEST_SECRET}}]
    watch: {processes: [web, ghost]}
  sick:
    sources: [{probe: {breaks: true}}]
  tg:
    role: generator
    sources: [{pump: {interval: 200ms}}]
    watch: {processes: [trex]}
"""


@pytest.fixture(autouse=True)
def _tiny_house(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the sources and rules beside this file importable."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    yield
    for name in [name for name in sys.modules if name.startswith("plugin_folders")]:
        del sys.modules[name]


def test_every_source_is_checked_and_one_that_fails_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each source gives samples or its sentence; a missing secret is named by its reference."""
    monkeypatch.delenv("SOAK_TEST_SECRET", raising=False)
    plan = plan_from_text(TEXT, "p.yaml", TINY)
    good, locked, sick, pump = asyncio.run(check_sources(plan, tmp_path, TINY))
    assert by_metric(good) == {"system.cpu.utilization": 1, "process.memory.usage": 1}
    assert (good.error, good.per_poll, good.polls(3600.0)) == (None, 2, 18000)
    assert [fault.text for fault in good.faults] == ["there is no sensor"]
    assert locked.error == "the environment variable SOAK_TEST_SECRET is not set: export it before the run"
    assert sick.error == "the device does not answer"
    assert by_metric(pump) == {"load.request.rate": 1}
    checks = (good, locked, sick, pump)
    assert disk_bytes(checks, 3600.0) == 3 * 18000 * 3.0
    assert [(target.name, name) for target, name in absent_processes(checks)] == [("dut", "ghost")]


@pytest.mark.parametrize(("silent", "read"), [(4, True), (1000, False)])
def test_a_source_that_is_slow_to_begin_has_ten_seconds_for_its_first_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: int, *, read: bool
) -> None:
    """It is polled until it brings something; where it does not, nothing is said of what the run would detect."""
    monkeypatch.setattr(plan_check, "PATIENCE_S", 0.001)
    monkeypatch.setattr(plan_check, "FIRST_ANSWER_S", 3600.0 if read else 0.05)
    text = f"phases: [{{soak: 30m}}]\ntargets: {{dut: {{sources: [{{probe: {{interval: 200ms, silent: {silent}}}}}]}}}}"
    plan = plan_from_text(text, "p.yaml", TINY)
    (check,) = asyncio.run(check_sources(plan, tmp_path, TINY))
    assert check.error is None
    assert bool(check.samples) is read
    unknown = ("dut probe", "not known: nothing was read")
    assert (unknown in sensitivity(plan, (check,), TINY)) is not read


@pytest.mark.parametrize(("slow", "seconds"), [(2, 0.0), (4, 0.0), (1000, 3.0)])
def test_a_poll_is_late_only_if_it_is_late_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: int, seconds: float
) -> None:
    """A busy machine delays some polls: the quickest of five says how long one takes."""
    time = VirtualTime()
    monkeypatch.setattr(plan_check, "SteadyClock", lambda: time)
    source = f"{{probe: {{interval: 1s, timeout: 5s, slow: {slow}}}}}"
    text = f"phases: [{{soak: 30m}}]\ntargets: {{dut: {{sources: [{source}]}}}}"
    (check,) = time.run(check_sources(plan_from_text(text, "p.yaml", TINY), tmp_path, TINY))
    assert (check.error, check.seconds) == (None, seconds)


def test_a_secret_is_in_no_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that complains with its secret in hand shows the reference only."""
    monkeypatch.setenv("SOAK_TEST_SECRET", "hunter2")
    plan = plan_from_text(TEXT, "p.yaml", TINY)
    checks = asyncio.run(check_sources(plan, tmp_path, TINY))
    assert checks[1].error == "device does not accept Secret(env:SOAK_TEST_SECRET)"


def test_free_space_is_that_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    """A folder that is yet to be made has the free space of where it will be made."""
    assert free_bytes(tmp_path / "runs" / "deep") > 0


def test_what_a_cadence_can_show() -> None:
    """Sentences name the shortest sure spike and the readings that growth needs, also where nothing can be shown."""
    assert spike_sentence(1.0, 3600.0, 10.0, 60.0).endswith(
        "spikes of 11 s and longer are always seen, shorter ones perhaps not"
    )
    assert "spikes of 2 min and longer" in spike_sentence(60.0, 3600.0, 10.0, 60.0)
    coarse = spike_sentence(300.0, 3600.0, 10.0, 60.0)
    assert "is undecided: polls every 5 min are further apart than 1 min" in coarse
    assert "is undecided: with polls every 1 s a spike must last 11 s" in spike_sentence(1.0, 5.0, 10.0, 60.0)
    assert growth_sentence(60.0, 600.0, 8, 0.05) == (
        "memory_growth, 10 samples in 10 min: undecided, 24 needed; run 24m, or poll more often"
    )
    assert "growth of more than 5 % from the first to the last third shows" in growth_sentence(1.0, 600.0, 8, 0.05)


def test_a_window_runs_from_the_first_to_the_last_of_its_phases(tmp_path: Path) -> None:
    """Two soaks with a stress between are one window; a rule whose phases are not there has the whole run."""
    plan = plan_from_text(TEXT, "p.yaml", TINY)
    assert judged_s(plan, ("soak",)) == 3000.0
    assert judged_s(plan, ("recovery",)) == judged_s(plan, ()) == 3600.0
    checks = asyncio.run(check_sources(plan, tmp_path, TINY))
    assert sensitivity(plan, checks, TINY) == (
        ("", "cpu_spike, memory_growth and growth find no metrics here: they do not apply"),
        ("dut locked", "not known: nothing was read"),
        ("sick probe", "not known: nothing was read"),
    )
    sentences = [f"{who}: {text}" for who, text in sensitivity(plan, checks)][:3]
    assert [sentence.replace(",", "").split()[2] for sentence in sentences] == ["cpu_spike", "memory_growth", "growth"]
    assert "growth needs a soak of 2 h or more; this one lasts 50 min" in sentences[2]
    assert "leaks of 0.0161 % to 1.02 % of the level a day show" in trend_sentence(0.3, 86400.0, 7200.0, 0.05)
