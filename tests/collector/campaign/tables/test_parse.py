"""What a campaign's file asks of its tables: every mistake is one sentence with its line and the remedy."""

from __future__ import annotations

import pytest

from soakwatch.campaign.campaign_model import Axis, AxisValue
from soakwatch.campaign.tables.parse import asked_table, tables_of
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.yaml import parse

AXES = tuple(
    Axis(name, tuple(AxisValue(value) for value in values))
    for name, values in {"size": ("64", "512"), "release": ("7.10", "7.2"), "kind": ("L4", "L3")}.items()
)


def problems(text: str) -> list[str]:
    """The sentences of the error that a file is."""
    with pytest.raises(PlanError) as caught:
        tables_of(parse(text, "c.yaml"), AXES)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("figures: [load.rx.packet.rat]", "c.yaml:1:11: unknown metric 'load.rx.packet.rat' in 'load.rx.packet.rat'"),
        ("figures: {a: 1}", "c.yaml:1:10: figures: expected a list, found keys and values"),
        ("figures:\n  - {scale_up: load.loss, along: kind}", "c.yaml:2:34: the axis 'kind' has the value 'L4'"),
        (
            "figures:\n  - {scale_up: load.loss, along: sise}",
            "c.yaml:2:34: the matrix has no axis 'sise'; did you mean",
        ),
        ("figures:\n  - {nam: x}", "c.yaml:2:5: expected an expression, or keys with figure, scale_up, share_of or"),
        ("figures: [load.loss, load.loss]", "c.yaml:1:22: two figures have the name 'load.loss'"),
        (
            "figures: [{figure: load.loss, bettter: lower}]",
            "c.yaml:1:31: unknown key 'bettter'; did you mean 'better'?",
        ),
        ("figures: [{figure: load.loss, name: verdict}]", "c.yaml:1:20: a figure cannot have the name 'verdict'"),
        ("tables: [{rows: size, columns: sizes}]", "c.yaml:1:32: the matrix has no axis 'sizes'; did you mean 'size'?"),
        ("tables: [{rows: size, columns: size}]", "c.yaml:1:32: 'size' is in rows and columns more than once"),
        ("tables: [{rows: size}]", "c.yaml:1:10: the key 'columns' is missing"),
        ("tables: [{rows: size, columns: kind, figures: [los]}]", "c.yaml:1:48: no figure has the name 'los'"),
        ("limits: [{figure: load.loss}]", "c.yaml:1:10: a limit has one of at_least and at_most"),
        (
            "limits: [{figure: load.loss, at_most: lots}]",
            "is not a value of a figure: write a number such as 1200, 0.5%",
        ),
        (
            "limits: [{figure: load.loss, at_most: 1%, where: {size: 65}}]",
            "c.yaml:1:57: the axis 'size' has no value '65'; known here: 512, 64",
        ),
        ("claims: [{figure: load.loss, value: 0, tolerance: 5%}]", "c.yaml:1:37: value: a tolerance in percent has no"),
        (
            "compare: {axis: release, to: 7.3}",
            "c.yaml:1:30: the axis 'release' has no value '7.3'; did you mean '7.2'?",
        ),
        ("compare: {axis: release, to: 7.2, margin: 120%}", "margin"),
    ],
)
def test_a_mistake_names_its_place_and_the_remedy(text: str, sentence: str) -> None:
    """One sentence each."""
    (problem,) = problems(text)
    assert sentence in problem
    assert problem.startswith("c.yaml:")


def test_all_mistakes_are_told_at_once() -> None:
    """In the order of their places."""
    found = problems("figures: [nothing]\ntables: [{rows: a, columns: b}]\ncompare: {axis: x, to: y}")
    assert [problem.split(": ")[0] for problem in found] == ["c.yaml:1:11", "c.yaml:2:17", "c.yaml:2:29", "c.yaml:3:17"]


def test_values_are_as_the_file_has_them() -> None:
    """7.10 is a release and not the number 7.1."""
    spec = tables_of(parse("compare: {axis: release, to: 7.10}", "c.yaml"), AXES)
    assert spec.comparisons[0].to == "7.10"


def test_figures_are_named_or_expressions() -> None:
    """A table may name a figure of the list, or an expression that stands nowhere else."""
    text = """
figures: [{figure: load.loss, name: lost}]
tables: [{rows: size, columns: kind, figures: [lost, load.jitter]}]
"""
    spec = tables_of(parse(text, "c.yaml"), AXES)
    assert [figure.name for figure in spec.figures] == ["lost", "load.jitter"]
    assert spec.named == ("lost",)
    assert spec.tables[0].figures == ("lost", "load.jitter")


@pytest.mark.parametrize(
    ("given", "rows", "columns"),
    [
        ({"table": "sizexkind"}, ("size",), ("kind",)),
        ({"table": "size,releasexkind"}, ("size", "release"), ("kind",)),
        ({"table": "figures x size"}, ("figures",), ("size",)),
        ({"rows": "size,kind"}, ("size", "kind"), ("figures",)),
        ({"columns": "kind"}, ("size", "release"), ("kind",)),
        ({"figures": ["load.loss"]}, ("size", "release", "kind"), ("figures",)),
    ],
)
def test_options_ask_for_a_table(given: dict[str, object], rows: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Rows, columns or both; what is not said follows."""
    spec = asked_table(tables_of(parse("{}", "c.yaml"), AXES), AXES, **given)  # type: ignore[arg-type]
    (table,) = spec.tables
    assert (table.rows, table.columns) == (rows, columns)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"table": "sizexcolour"}, "--table sizexcolour: write two axes with an x between them, such as sizexkind"),
        ({"rows": "colour"}, "the table: the matrix has no axis 'colour'; known here: kind, release, size"),
        ({"figures": ["load.los"]}, "did you mean 'load.loss'?"),
        ({"table": "sizexkind", "rows": "size"}, "--table says what rows and columns are"),
    ],
)
def test_options_that_ask_for_nothing_are_told(given: dict[str, object], sentence: str) -> None:
    """With what there is."""
    with pytest.raises(SoakwatchError) as caught:
        asked_table(tables_of(parse("{}", "c.yaml"), AXES), AXES, **given)  # type: ignore[arg-type]
    assert sentence in str(caught.value)
