"""The catalogue of metrics: what it says of each is whole, and pages, figures and sinks take it from there."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from soakwatch.cli.commands.metrics import command
from soakwatch.core.plain_names import plain_name
from soakwatch.core.registry import INSTALLED, rule_class
from soakwatch.report.topics import TOPICS
from soakwatch.runs.figure_spec import STATISTICS, better_of, name_of, parse_figure
from soakwatch.runs.key_figures import STANDARD
from soakwatch_model.metric import BY_NAME, CATALOGUE
from soakwatch_model.metric_entry import FAILS, GOES_OFF, SURGES, WARNS
from soakwatch_model.metric_queries import (
    bad_direction,
    changing,
    drop_counters,
    shown_in,
    trending,
    turns_of,
    usual_in,
    why_unjudged,
)


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


def test_every_metric_is_judged_or_says_why_not() -> None:
    """No row of the table of metrics and rules is empty, and none says both."""
    judged = {metric for rule in INSTALLED.rules.names() for metric in rule_class(rule).metrics}
    silent = [m.name for m in CATALOGUE if m.name not in judged and not why_unjudged(m.name)]
    assert silent == [], "name the rule that judges it, or say with unjudged= why none does"
    assert [m.name for m in CATALOGUE if m.name in judged and m.unjudged] == []


def test_what_the_generic_rules_judge_has_a_direction() -> None:
    """A trend needs one, and so does a surge; a state that goes off is one that is worse when it is down."""
    assert [name for name in (*trending(), *changing(SURGES, GOES_OFF)) if not bad_direction(name)] == []
    said = {*(m.trend for m in CATALOGUE if m.trend), *(m.change.outcome for m in CATALOGUE if m.change is not None)}
    assert said == {FAILS, WARNS}


def test_what_only_warns_says_why() -> None:
    """Each metric of which a generic rule only warns has its reason, and no other one has."""
    warned = {m.name for m in CATALOGUE if WARNS in {m.trend, m.change.outcome if m.change is not None else ""}}
    assert {m.name for m in CATALOGUE if m.mild} == warned
    assert "only warns  no packet is lost by it" in CliRunner().invoke(command, ["system.softnet.squeezed"]).output


def test_the_table_of_rules_says_what_only_warns() -> None:
    """A metric has the rules that judge it, or a reason; a generic rule that never fails a device by it is marked."""
    shown = CliRunner().invoke(command, ["--rules"]).output.splitlines()
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in shown}
    assert len(rows) == len(CATALOGUE) + 1
    assert rows["system.power"] == "trend (warns)"
    assert rows["system.network.up"] == "change"
    assert rows["system.sessions.limit"] == "none: the limit of system.sessions"


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
