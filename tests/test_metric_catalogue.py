"""The catalogue of metrics: what it says of each is whole, and pages, figures and sinks take it from there."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from soakwatch.cli.commands.metrics import command
from soakwatch.core.plain_names import plain_name
from soakwatch.report.topics import TOPICS
from soakwatch.runs.figure_spec import STATISTICS, better_of, name_of, parse_figure
from soakwatch.runs.figures import STANDARD
from soakwatch_model.metric import BY_NAME, CATALOGUE
from soakwatch_model.metric_queries import drop_counters, shown_in, turns_of, usual_in


def test_every_metric_of_a_topic_is_on_the_page() -> None:
    """No entry names a topic that the page does not have, and no turn of a topic is left out."""
    on_page = {metric for topic in TOPICS for metric in topic.metrics}
    assert {metric.name for metric in CATALOGUE if metric.shown is not None} | set(drop_counters()) == on_page
    for topic in {metric.shown.topic for metric in CATALOGUE if metric.shown is not None}:
        turns = sorted({m.shown.turn for m in CATALOGUE if m.shown is not None and m.shown.topic == topic})
        assert turns == list(range(1, len(turns) + 1)), topic
        assert len(turns_of(topic)) == len(turns)
        assert set(usual_in(topic)) <= set(shown_in(topic))


def test_standard_figures_are_of_the_metrics_that_ask_for_them() -> None:
    """Each has a place of its own and expressions of its metric; only what is sent has no direction."""
    places = [metric.figures.place for metric in CATALOGUE if metric.figures is not None]
    assert len(places) == len(set(places))
    for metric in CATALOGUE:
        for text in metric.figures.expressions if metric.figures is not None else ():
            assert parse_figure(text).metric == metric.name
    assert [spec.metric for spec in STANDARD][:2] == ["load.capacity.packet.rate", "load.capacity.rate"]
    without = {spec.metric for spec in STANDARD if not better_of(spec.metric, spec.statistic)}
    assert without == {"load.tx.packets", "load.tx.packet.rate"}
    assert {metric.statistic for metric in CATALOGUE} <= {"", *STATISTICS}


def test_a_metric_has_one_name() -> None:
    """Sentences and figures call it the same; of a process a figure says whose it is."""
    for metric in CATALOGUE:
        if metric.words:
            whose = " of the process" if "process" in metric.labels else ""
            assert name_of("max", metric.name, {}) == f"{metric.words}{whose}, highest"
            assert plain_name(metric.name, "") == metric.words
    assert {plain_name(name, "") for name in ("load.requests", "load.request.rate")} == {"requests"}


def test_a_direction_that_is_bad_is_said_once() -> None:
    """What may not grow needs no second direction, and where both stand they agree."""
    assert [m.name for m in CATALOGUE if m.growth is not None and m.worse is not None] == []
    assert all(m.growth is not None for m in CATALOGUE if m.by_load)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "load.rx.packets",
            ["called", "packets received", "worse", "down", "traffic", "packets, back (generator)"],
        ),
        ("system.memory.usage", ["called", "memory in use", "bad growth", "limit", "system.memory.limit", "topic"]),
        ("load.flow.loss", ["range", "0 to 1", "traffic", "packets, lost (flow)", "topic", "Loss"]),
    ],
)
def test_the_command_shows_all_that_is_known_of_a_metric(name: str, lines: list[str]) -> None:
    """The whole name shows words, directions, what it says of the traffic, and where it is shown."""
    shown = CliRunner().invoke(command, [name])
    assert shown.exit_code == 0
    assert shown.output.startswith("metric")
    assert all(text in shown.output for text in (*lines, BY_NAME[name].about))


def test_a_part_of_a_name_still_lists_metrics() -> None:
    """One line a metric, as before."""
    shown = CliRunner().invoke(command, ["load.flow.*"])
    assert shown.output.splitlines()[0].split() == ["metric", "unit", "kind", "growth", "labels", "meaning"]
    assert len(shown.output.splitlines()) == 1 + sum(m.name.startswith("load.flow.") for m in CATALOGUE)
