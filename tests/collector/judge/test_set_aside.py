"""Readings that cannot be, in the verdict of whole nights by the command: none convicts, and real bursts still do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bench.accuracy.garbled import drawn, tried, well
from tests.bench.accuracy.night import Night, floats, write_run
from tests.collector.judge.live_device import Device, evaluator_of

from soakwatch.cli.main import run
from soakwatch_model.finding import Outcome
from soakwatch_rules.detectors.drops import Drops
from soakwatch_rules.detectors.reboot import Reboot

IF = "interface=eth1,direction=receive"
DROPPED = "system.network.packet.dropped"


def verdict_of(night: Night, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command says of a night."""
    write_run(night, folder / "record")
    capsys.readouterr()
    run(["judge", str(folder / "record"), "--json", "-"])
    verdict: dict[str, Any] = json.loads(capsys.readouterr().out)
    return verdict


def the_drops(verdict: dict[str, Any], metric: str = DROPPED) -> dict[str, Any]:
    """The finding of the rule on drops for one counter."""
    (found,) = [f for f in verdict["findings"] if (f["rule"], f["metric"]) == ("drops", metric)]
    return dict(found)


def test_no_garbled_reading_fails_a_night_and_every_burst_does() -> None:
    nights = [tried(seed) for seed in range(5000, 5020)]
    assert [(n.seed, n.ways, n.reason) for n in nights if (n.verdict == "fail") != bool(n.lost)] == []
    assert sum(n.named > 0 for n in nights if n.ways) >= 10


def test_one_reading_taken_back_is_listed_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night = well(4)
    value = night.of(DROPPED, IF)
    value[:] = 100.0
    value[50] += 2.0**32
    verdict = verdict_of(night, tmp_path, capsys)
    assert verdict["verdict"] == "pass"
    (aside,) = verdict["set_aside"]
    assert (aside["metric"], aside["count"], aside["undecided"]) == (DROPPED, 1, "")
    found = the_drops(verdict)
    text = "it cannot be (it jumped by 4,294,967,296 and was back at the next reading)"
    assert found["outcome"] == "pass"
    assert any(text in doubt for doubt in found["doubts"])


def test_many_of_them_leave_it_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night = well(4)
    value = night.of(DROPPED, IF)
    value[:] = 100.0
    value[5:-5:12] = 0.0
    verdict = verdict_of(night, tmp_path, capsys)
    found = the_drops(verdict)
    assert (verdict["verdict"], found["outcome"], found["why"]) == (
        "inconclusive",
        "inconclusive",
        "could not be read",
    )
    assert "were set aside: they cannot be" in found["reason"]
    assert "% of them" in found["reason"]


def test_more_drops_than_packets_that_came_are_no_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night = well(4)
    sent = float(np.diff(night.of("load.tx.packets")).max())
    night.of(DROPPED, IF)[60:] += 20 * sent
    found = the_drops(verdict_of(night, tmp_path, capsys))
    assert found["outcome"] == "inconclusive"
    assert "what was counted then is not known" in found["reason"]
    night = well(4)
    night.of(DROPPED, IF)[60:] += 0.9 * sent
    assert the_drops(verdict_of(night, tmp_path / "less", capsys))["outcome"] == "fail"


def test_a_counter_above_two_to_the_31_that_was_reset_lost_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night = well(4)
    value = night.of("queue.dropped", "queue=0")
    value[:] = 3e9
    value[70:] = 0.0
    found = the_drops(verdict_of(night, tmp_path, capsys), "queue.dropped")
    assert found["outcome"] == "pass"
    assert "reset 1 time" in " ".join(found["doubts"])


@pytest.mark.parametrize("metric", ["load.tx.packets", "load.rx.packets"])
def test_a_leap_of_the_generators_own_counters_is_no_loss_and_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str
) -> None:
    """What was sent or came back in that minute is not known: nothing was lost, or all of it."""
    night = well(4)
    night.of(metric)[60:] += 7e14
    verdict = verdict_of(night, tmp_path, capsys)
    assert verdict["verdict"] == "inconclusive"
    (loss,) = [f for f in verdict["findings"] if f["rule"] == "loss" and f["target"] == "fw"]
    assert loss["outcome"] == "inconclusive"
    assert f"readings of {metric} was set aside" in loss["reason"]
    assert "what was counted then is not known" in loss["reason"]


def test_the_record_keeps_what_the_rules_do_not_see(tmp_path: Path) -> None:
    night, ways, _ = drawn(5000)
    write_run(night, tmp_path / "record")
    from soakwatch.record import RecordView

    with RecordView.open(tmp_path / "record") as view:
        kept = {key: view.series(key).values for key in view.keys(None)}
    assert ways
    for key, value in night.value.items():
        (read,) = [v for k, v in kept.items() if (k.target, k.metric, k.object) == (key.target, key.metric, key.object)]
        assert np.allclose(read, value)


def test_a_pool_whose_size_is_what_is_used_has_no_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night = well(4)
    used = floats(2.0**20 * (1.0 + 15.0 * (np.arange(night.at_s.size) >= 60)))
    night.put("system.memory.pool.usage", used, "pool=Shared memory")
    outcomes = {}
    for name, size in (("used", used), ("whole", floats(np.full(used.size, 2.0**24)))):
        night.put("system.memory.pool.limit", size, "pool=Shared memory")
        verdict = verdict_of(night, tmp_path / name, capsys)
        outcomes[name] = [f["outcome"] for f in verdict["findings"] if f["rule"] == "saturation"]
    assert "fail" not in outcomes["used"]
    assert "fail" in outcomes["whole"]


def test_nor_does_one_fail_a_run_that_goes_on_at_any_minute(tmp_path: Path) -> None:
    device = Device(tmp_path / "run")
    device.levels["queue.dropped", "queue=0"] = lambda second: 100 + 2**32 * (second == 1200)
    device.levels["queue.dropped", "queue=1"] = lambda second: 100 * (second != 1800)
    device.levels["queue.dropped", "queue=2"] = lambda second: 100 + 50 * (second >= 3000)
    device.levels["system.uptime", ""] = lambda second: (90_000.0 + second) * (second != 1800)
    live = evaluator_of(device, Drops(), Reboot())
    failed = []
    for _ in range(60):
        device.run(60)
        live.evaluate()
        failed.append({f.object for f in live.findings if f.outcome is Outcome.FAIL})
    device.record.close()
    assert failed[:50] == [set()] * 50
    assert failed[51:] == [{"queue=2"}] * 9
