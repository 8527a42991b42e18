"""Key figures of a run by their expressions: what they mean, which stretch they are of, and when there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from soakwatch.core.errors import SoakwatchError
from soakwatch.record import Record, RecordView
from soakwatch.runs.key_figures import FigureValue, figure_of, figure_text, parse_figure, standard_figures
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_790_000_000 * SECOND
Reading = Callable[[int], float | None]
MakeRecord = Callable[..., Path]


@pytest.fixture
def make_record(tmp_path: Path) -> MakeRecord:
    """A record of two minutes: half a minute of baseline, a minute of soak, half a minute of stress, a poll a second.

    ``readings`` is by target, metric and object: the value at a second, None where there is none. A poll of a target
    in ``silent`` is not answered at these seconds.
    """

    def make(
        readings: Mapping[tuple[str, str, str], Reading],
        *,
        silent: Mapping[str, range] | None = None,
        phases: Sequence[tuple[str, int]] = (("baseline", 0), ("soak", 30), ("stress", 90)),
        seconds: int = 120,
    ) -> Path:
        folder = tmp_path / "run"
        roles = {"dut": "dut", "other": "dut", "tg": "generator", "tg2": "generator"}
        with Record.create(folder) as record:
            targets = sorted({target for target, _, _ in readings})
            for target in targets:
                record.target(target, roles[target])
            sources = {
                target: record.source(target, "local", f"{target}/local", SECOND, required=True).id
                for target in targets
            }
            for name, begin in phases:
                record.begin_phase(name, T0 + begin * SECOND)
            polls = []
            for second in range(seconds):
                due = T0 + second * SECOND
                for target in targets:
                    if second in (silent or {}).get(target, ()):
                        polls.append(Poll(sources[target], due, due, 1, PollOutcome.TIMEOUT, "no answer", NOTHING))
                        continue
                    values = [
                        (metric, obj, value(second)) for (of, metric, obj), value in readings.items() if of == target
                    ]
                    samples = tuple(Sample(m, o, v, due) for m, o, v in values if v is not None)
                    polls.append(Poll(sources[target], due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
            record.put(polls)
        return folder

    return make


def value_of(folder: Path, text: str) -> FigureValue:
    """One figure of a run."""
    with RecordView.open(folder) as view:
        return figure_of(view, parse_figure(text))


def test_a_counter_is_counted_in_the_phases_under_load(make_record: MakeRecord) -> None:
    """1,000 packets a second in soak, 2,000 in stress, none before: the rate of a phase is that of its own seconds."""

    def packets(second: int) -> float:
        return 1000.0 * max(0, min(second, 90) - 30) + 2000.0 * max(0, second - 90)

    folder = make_record({("tg", "load.rx.packets", ""): packets})
    assert value_of(folder, 'load.rx.packets{phase="soak"}') == FigureValue(1000.0, "{packet}/s", "higher")
    assert value_of(folder, 'rate(load.rx.packets{phase="stress"})').value == pytest.approx(2000.0)
    assert value_of(folder, "load.rx.packets").value == pytest.approx((60 * 1000 + 29 * 2000) / 89)
    assert value_of(folder, 'total(load.rx.packets{phase="all"})').value == pytest.approx(118_000)
    assert value_of(folder, "max(load.rx.packets)").value == pytest.approx(2000.0)
    assert value_of(folder, 'p50(load.rx.packets{phase="soak"})').value == pytest.approx(1000.0)
    assert value_of(folder, "last(load.rx.packets)") == FigureValue(118_000.0, "{packet}", "higher")


def test_a_counter_that_wraps_or_begins_again_is_no_negative_rate(make_record: MakeRecord) -> None:
    """2**32 is behind the highest 32-bit count; a process that restarts counts from 0 again."""
    wraps = make_record({("tg", "load.rx.packets", ""): lambda s: int(2**32 - 60_000 + 1000 * s) % 2**32})
    assert value_of(wraps, "load.rx.packets").value == pytest.approx(1000.0)


def test_a_restarted_counter_counts_what_it_shows(make_record: MakeRecord) -> None:
    """Of the second in which it began again only what it counted since is known."""
    folder = make_record({("tg", "load.rx.packets", ""): lambda s: 1000.0 * s if s < 60 else 1000.0 * (s - 60)})
    assert value_of(folder, "load.rx.packets").value == pytest.approx(1000.0, rel=0.02)


def test_the_first_reading_of_a_phase_tells_of_what_was_before(make_record: MakeRecord) -> None:
    """A rate that the generator says at second 30 is that of the second before the soak phase: it is left out."""
    folder = make_record({("tg", "load.rx.packet.rate", ""): lambda s: 500.0 if s > 30 else 0.0})
    assert value_of(folder, 'min(load.rx.packet.rate{phase="soak"})').value == 500.0
    assert value_of(folder, 'load.rx.packet.rate{phase="baseline"}').value == 0.0


def test_the_loss_of_a_generator_that_names_none_is_that_of_its_counters(make_record: MakeRecord) -> None:
    """TRex and Pktgen count what they send and what comes back; without traffic there is no share."""
    folder = make_record(
        {
            ("tg", "load.tx.packets", ""): lambda s: 1000.0 * max(0, s - 30),
            ("tg", "load.rx.packets", ""): lambda s: 1000.0 * max(0, s - 30) - 250.0 * max(0, s - 90),
        }
    )
    assert value_of(folder, 'load.loss{phase="soak"}') == FigureValue(0.0, "1", "lower")
    assert value_of(folder, 'load.loss{phase="stress"}').value == pytest.approx(0.25)
    assert value_of(folder, 'load.loss{phase="baseline"}') == FigureValue(None, "1", "lower", "nothing was sent")
    assert value_of(folder, "max(load.loss)").reason == "the run has no load.loss"
    with RecordView.open(folder) as view:
        assert "load.loss" in [spec.text for spec in standard_figures(view)]


def test_more_packets_back_than_sent_is_no_loss_of_zero(make_record: MakeRecord) -> None:
    """Duplicates hide what was lost."""
    folder = make_record(
        {
            ("tg", "load.tx.packets", ""): lambda s: 1000.0 * s,
            ("tg", "load.rx.packets", ""): lambda s: 1200.0 * s,
        }
    )
    loss = value_of(folder, "load.loss")
    assert (loss.value, loss.reason) == (None, "20.00% more packets came back than were sent: no loss can be told")


def test_a_latency_without_a_quantile_is_chosen_by_an_empty_one(make_record: MakeRecord) -> None:
    """It is no 99th percentile, so the usual expression does not take it, and says how to."""
    folder = make_record({("tg", "load.latency", ""): lambda _: 0.002})
    none = value_of(folder, "load.latency")
    assert none.value is None
    assert none.reason.endswith('there is one that does not say it: choose it by quantile=""')
    assert value_of(folder, 'max(load.latency{quantile=""})').value == pytest.approx(0.002)


def test_several_series_are_taken_together_by_what_they_are(make_record: MakeRecord) -> None:
    """Rates of ports and bytes of processes are added up, of shares the mean, of latencies the highest."""
    folder = make_record(
        {
            ("tg", "load.port.rx.packet.rate", "port=0"): lambda s: 100.0 + s % 2,
            ("tg", "load.port.rx.packet.rate", "port=1"): lambda s: 301.0 - s % 2,
            ("tg", "load.latency", "quantile=p99"): lambda _: 0.002,
            ("tg2", "load.latency", "quantile=p99"): lambda _: 0.005,
            ("tg", "load.latency", "quantile=p50"): lambda _: 0.001,
            ("dut", "system.cpu.utilization", ""): lambda _: 0.2,
            ("other", "system.cpu.utilization", ""): lambda s: 0.6 if s < 119 else 0.9,
            ("dut", "process.memory.usage", "process=a,instance=0"): lambda s: 2.0**20 + s * 4096,
            ("dut", "process.memory.usage", "process=b,instance=0"): lambda _: 2.0**20,
        }
    )
    assert value_of(folder, "max(load.port.rx.packet.rate)").value == pytest.approx(401.0)  # not 402, the sum of maxima
    assert value_of(folder, 'max(load.port.rx.packet.rate{port="1"})').value == 301.0
    assert value_of(folder, "load.latency").value == pytest.approx(0.005)
    assert value_of(folder, 'load.latency{quantile="p50"}').value == pytest.approx(0.001)
    assert value_of(folder, 'load.latency{target="tg"}').value == pytest.approx(0.002)
    assert value_of(folder, 'system.cpu.utilization{phase="soak"}').value == pytest.approx(0.4)
    assert value_of(folder, "max(system.cpu.utilization)").value == 0.9
    slope = value_of(folder, "slope(process.memory.usage)")
    assert slope.value == pytest.approx(4096 * 3600)
    assert (slope.unit, slope.better) == ("By/h", "lower")
    with RecordView.open(folder) as view:
        usual = standard_figures(view)
        said = {spec.name: figure_text(spec, figure_of(view, spec)) for spec in usual}
    assert [spec.metric for spec in usual][:2] == ["load.latency", "load.latency"]
    assert said["latency p99, mean"] == "5 ms"
    assert said["CPU, mean"] == "40.2 %"


def test_missing_is_never_zero(make_record: MakeRecord) -> None:
    """No figure where less than half of the polls were answered, no such phase, label, metric or target; and why."""
    folder = make_record(
        {
            ("tg", "load.loss", ""): lambda _: 0.01,
            ("dut", "system.cpu.utilization", ""): lambda s: 0.5 if s < 20 else None,
            ("dut", "system.cpu.load", "minutes=1"): lambda _: 1.0,
            ("dut", "system.cpu.load", "minutes=5"): lambda _: 1.0,
        },
        silent={"tg": range(40, 80)},
    )
    reasons = {
        'load.loss{phase="soak"}': "tg/local answered 20 of 60 polls in soak: less than half",
        'load.loss{phase="spike"}': "the run has no phase spike; it has baseline, soak, stress",
        "system.cpu.utilization": "no reading in soak, stress",
        'system.cpu.utilization{role="generator"}': (
            "no target that is meant has system.cpu.utilization; it is known of dut (dut)"
        ),
        "load.rx.packets": "the run has no load.rx.packets",
        "system.cpu.load": "system.cpu.load has several values of minutes here (1, 5): choose one of them",
        'system.cpu.load{minutes="15"}': 'no system.cpu.load with minutes="15" here; there is minutes=1; minutes=5',
    }
    for text, reason in reasons.items():
        value = value_of(folder, text)
        assert (value.value, value.reason) == (None, reason)
    assert value_of(folder, 'load.loss{phase="stress"}').value == pytest.approx(0.01)
    assert value_of(folder, "load.loss").value is not None
    assert figure_text(parse_figure("load.rx.packets"), value_of(folder, "load.rx.packets")) == "–"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("load.rx.packet", "unknown metric 'load.rx.packet' in 'load.rx.packet'; did you mean 'load.rx.packets'?"),
        ("maxx(load.loss)", "unknown statistic 'maxx' in 'maxx(load.loss)'; did you mean 'max'?"),
        ("rate(load.loss)", "rate in 'rate(load.loss)' needs a counter, but load.loss is a gauge: write mean"),
        ('load.loss{quantle="p9"}', "load.loss has no label 'quantle'; known here: object, phase, role, target"),
        ('load.loss{phase="soke"}', """unknown phase 'soke' in 'load.loss{phase="soke"}'; did you mean 'soak'?"""),
        ("load.loss{phase=soak}", "the labels of 'load.loss{phase=soak}' cannot be read: write {name=\"value\"}"),
        ('load.loss{role=~"d.*"}', """=~ in 'load.loss{role=~"d.*"}' is not supported: a label is chosen by ="""),
        ("", "'' is no figure: write METRIC or STATISTIC(METRIC), such as max(load.latency{quantile=\"p99\"})"),
    ],
)
def test_a_wrong_expression_is_told_in_one_sentence(text: str, sentence: str) -> None:
    """The place and what is nearest."""
    with pytest.raises(SoakwatchError) as error:
        parse_figure(text)
    assert str(error.value) == sentence


def test_a_capacity_is_what_the_search_found(make_record: MakeRecord) -> None:
    """Read once, behind the search and before the soak phase; what only the generator's limit is, is no capacity."""
    found = make_record({("tg", "load.capacity.packet.rate", "loss=0,bound=found"): lambda s: 5e6 if s == 20 else None})
    assert value_of(found, "load.capacity.packet.rate") == FigureValue(5e6, "{packet}/s", "higher")
    assert value_of(found, 'load.capacity.packet.rate{loss="0"}').value == 5e6
    with RecordView.open(found) as view:
        assert standard_figures(view)[0].name == "capacity"


def test_no_two_usual_figures_have_the_same_words(make_record: MakeRecord) -> None:
    """Requests that are counted and their rate as the generator says: "requests, mean rate" stood there twice."""
    both = make_record(
        {("tg", "load.requests", ""): lambda s: 800.0 * s, ("tg", "load.request.rate", ""): lambda _: 800.0}
    )
    with RecordView.open(both) as view:
        names = [spec.name for spec in standard_figures(view)]
    assert names.count("requests, mean rate") == 1
    assert len(names) == len(set(names))


def test_a_least_value_is_no_capacity(make_record: MakeRecord) -> None:
    """It is a figure for those who ask for it."""
    least = make_record(
        {("tg", "load.capacity.packet.rate", "loss=0,bound=at least"): lambda s: 5e6 if s == 20 else None}
    )
    value = value_of(least, "load.capacity.packet.rate")
    assert value.value is None
    assert value.reason == 'no load.capacity.packet.rate with bound="found" here; there is loss=0,bound=at least'
    assert value_of(least, 'load.capacity.packet.rate{bound="at least"}').value == 5e6


def test_energy_per_packet_is_power_over_what_came_back(make_record: MakeRecord) -> None:
    """A ratio of two figures of one stretch; the same watt of another sensor is not counted twice."""
    readings: dict[tuple[str, str, str], Reading] = {
        ("dut", "system.power", "sensor=rapl package-0"): lambda second: 150.0 if second >= 30 else 60.0,
        ("dut", "system.power", "sensor=rapl package-0 core"): lambda _: 100.0,
        ("dut", "system.power", "sensor=rapl package-0 dram"): lambda _: 50.0,
        ("tg", "load.rx.packet.rate", ""): lambda second: 1e7 if second >= 30 else None,
    }
    with RecordView.open(make_record(readings)) as view:
        spec = parse_figure('system.power{phase="soak"} / load.rx.packet.rate{phase="soak"}')
        each = figure_of(view, spec)
        assert each.value == pytest.approx(2e-5)
        assert (each.unit, each.better) == ("J/{packet}", "lower")
        assert figure_text(spec, each) == "20 µJ/packet"
        assert figure_of(view, parse_figure('system.power{sensor="rapl package-0 core"}')).value == 100
        assert "energy per packet" in [spec.name for spec in standard_figures(view)]
        lacking = figure_of(view, parse_figure("system.power / load.request.rate"))
        assert (lacking.value, lacking.reason) == (None, "the run has no load.request.rate")
    with pytest.raises(SoakwatchError, match="divides twice"):
        parse_figure("system.power / load.tx.packets / load.rx.packets")
