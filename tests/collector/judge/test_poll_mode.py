"""What a record knows of cores that poll, and what its verdict makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.poll_mode import META, planned_text, poll_modes
from soakwatch.plan import plan_from_text
from soakwatch.record import Record, RecordView
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_rules.detectors.cpu_saturation import CpuSaturation
from soakwatch_rules.detectors.cpu_spike import CpuSpike

T0 = 1_700_000_000 * 10**9
TOTAL, CORE = "system.cpu.utilization", "system.cpu.core.utilization"


def recorded(folder: Path, levels: dict[tuple[str, str], float], **meta: str) -> RecordView:
    """A record of an hour, a poll each 10 s, of constant readings."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", 10 * 10**9, required=True)
        for key, value in meta.items():
            record.set_meta(key, value)
        for index in range(360):
            due = T0 + index * 10 * 10**9
            samples = tuple(Sample(metric, name, value, due) for (metric, name), value in levels.items())
            record.put([Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))])
    return RecordView.open(folder)


BUSY = {(TOTAL, ""): 0.97}
ISOLATED = json.dumps({"dut": {"cpu": {"isolated": "2-3,6", "nohz_full": None}}})


@pytest.mark.parametrize(
    ("levels", "meta", "expected"),
    [
        (BUSY, {}, {}),
        (BUSY, {META: '{"dut": []}'}, {"*": "the plan says so"}),
        (BUSY, {META: '{"dut": [2]}'}, {"core=2": "the plan says so"}),
        (BUSY, {META: '{"other": []}'}, {}),
        (
            BUSY,
            {"fingerprint": ISOLATED},
            {f"core={n}": "the system keeps it for one program (isolated, nohz_full)" for n in (2, 3, 6)},
        ),
        (BUSY, {"fingerprint": ISOLATED.replace("2-3,6", "0-99999999999")}, {}),  # more than memory holds
        (
            {**BUSY, ("system.forwarding.dropped", "place=dpdk fwd port 0,reason=imissed"): 0.0},
            {},
            {"*": "DPDK forwards there"},
        ),
        (
            {**BUSY, **{(CORE, f"core={n}"): 1.0 for n in range(19)}, (CORE, "core=19"): 0.3},
            {},
            {"": "19 of its 20 cores poll, and the others have room"},
        ),
        ({**BUSY, **{(CORE, f"core={n}"): 1.0 for n in range(20)}}, {}, {}),
    ],
)
def test_what_says_that_cores_poll(
    tmp_path: Path, levels: dict[tuple[str, str], float], meta: dict[str, str], expected: dict[str, str]
) -> None:
    """The plan, the system, a packet driver, or the cores beside a total; nothing where nothing says so."""
    with recorded(tmp_path, levels, **meta) as view:
        assert poll_modes(view, "dut") == expected


def test_a_plan_says_which_cores_poll() -> None:
    """A list of cores, all of them, or none."""
    text = "name: n\nduration: 1h\ntargets:\n" + "".join(
        f"  {name}: {{sources: [{{local: {{interval: 10s}}}}]{more}}}\n"
        for name, more in (("a", ", poll_mode: [2, 3]"), ("b", ", poll_mode: true"), ("c", ""))
    )
    assert json.loads(planned_text(plan_from_text(text, "p.yaml").targets)) == {"a": [2, 3], "b": []}


def test_a_device_known_to_use_poll_mode_is_not_inconclusive(tmp_path: Path) -> None:
    """A total of 97 % all along is left open, and warned of; where the plan says that it polls it is neither."""
    uses = [RuleUse(CpuSpike()), RuleUse(CpuSaturation())]
    with recorded(tmp_path / "a", BUSY) as view:
        assert [f.outcome for f in judge(view, "a", uses).findings] == [Outcome.INCONCLUSIVE, Outcome.WARN]
    with recorded(tmp_path / "b", BUSY, **{META: '{"dut": []}'}) as view:
        assert [f.outcome for f in judge(view, "b", uses).findings] == [Outcome.NOT_APPLICABLE] * 2
        assert CaseBuilder(view).case(CpuSpike(), "dut", list(view.keys([TOTAL])), view.window()).facts.polling
