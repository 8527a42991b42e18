"""Labels as a plan writes them: texts, where they are read, and a sentence for each mistake."""

from __future__ import annotations

import pytest
from tests.collector.plan_validator import plan_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.yaml import parse
from soakwatch.plan import Plan, plan_from_text, plan_text

NUMBER = "is read as the number"
SHORT = "duration: 1h\ntargets: {dut: {sources: [local]}}\n"


def texts(plan: Plan) -> dict[str, str]:
    """The texts of a plan's labels by name; "" for those that are read."""
    return {label.name: label.text for label in plan.labels}


def test_texts_and_whole_numbers_are_labels_in_the_order_of_the_plan() -> None:
    """They read back from the plan of the record; without the key, or with nothing behind it, there are none."""
    plan = plan_from_text(SHORT + 'labels: {testbed: rack-3, release: "7.10", build: 1841, moment: 1:30}', "p.yaml")
    assert texts(plan) == {"testbed": "rack-3", "release": "7.10", "build": "1841", "moment": "1:30"}
    assert plan_from_text(plan_text(plan), "again") == plan
    assert plan_from_text(SHORT, "p.yaml").labels == plan_from_text(SHORT + "labels:\n", "p.yaml").labels == ()


def test_labels_of_the_command_line_replace_those_of_the_plan() -> None:
    """Also one that would be read; the text that the record keeps has them."""
    plan = plan_from_text(SHORT + "labels: {release: {command: [uname, -r]}, testbed: rack-3}", "p.yaml")
    labelled = plan.labelled({"release": "7.3", "build": "9"})
    assert texts(labelled) == {"release": "7.3", "testbed": "rack-3", "build": "9"}
    assert plan_from_text(plan_text(labelled), "again") == labelled
    assert labelled.lasting("2h").labels == labelled.labels
    assert plan.labelled({}) is plan
    with pytest.raises(PlanError, match="labels: 33 are too many: 32 at most"):
        plan.labelled({f"n{number}": "x" for number in range(31)})


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ("{release: 7.10}", f'3:19: labels: the label release {NUMBER} 7.1 without quotes: put it in quotes, "7.10"'),
        ("{release: 7.2}", f'3:19: labels: the label release {NUMBER} 7.2 without quotes: put it in quotes, "7.2"'),
        ("{release: 1e3}", 'without quotes: put it in quotes, "1e3"'),
        ("{build: 007}", f'3:17: labels: the label build {NUMBER} 7 without quotes: put it in quotes, "007"'),
        ("{build: +5}", 'put it in quotes, "+5"'),
        ("{on: true}", "3:14: labels: the label on is true: write a text in quotes"),
        ("{release: }", "labels: the label release is nothing: write a text in quotes"),
        ('{release: " "}', "the label release has no value: write one, or leave the label out"),
        ("{release: [7]}", "labels: the label release is a list: write"),
        (f"{{release: {'x' * 201}}}", "the label release has 201 characters: 200 at most"),
        ('{release: "a\\nb"}', "the label release is not one line of printable text"),
        ("{release: env:TOKEN}", "refers to a secret (env:TOKEN), and labels are shown: give its text"),
        ("{Release: a}", "3:10: labels: 'Release' cannot name a label: write a lower-case word such as release"),
        ("{7a: a}", "'7a' cannot name a label"),
        (f"{{{'a' * 41}: a}}", "cannot name a label"),
        ("[release]", "3:9: labels: expected names with their values, such as"),
        ("release", "expected names with their values, such as {release: \"7.2\"}, found 'release'"),
        ("{r: {command: [a], package: b}}", "3:13: labels: the label r: is read in one way: give command, or package"),
        ("{r: {}}", "labels: the label r: is read in one way: give command, or package"),
        ("{r: {comand: [a]}}", "labels: the label r: unknown key 'comand'; did you mean 'command'?"),
        ("{r: {command: []}}", "expected a command such as"),
        ('{r: {command: [a], pattern: "("}}', "the label r: pattern '(' is not a regular expression: missing )"),
        ("{r: {package: nginx, pattern: a}}", "pattern belongs to a command: a package has one version"),
        ("{r: {package: a b}}", "'a b' is not the name of a package: write one such as nginx"),
        ("{r: {package: --help}}", "'--help' is not the name of a package"),
        ("{r: {package: nginx, target: fw}}", "labels: the label r: there is no target 'fw'; known here: dut"),
        ("{r: {command: [a], target: dut}}", "target belongs to a package: a command is run on this machine"),
        ("{r: {command: [a], timeout: 1h}}", "timeout: '1h' is out of bounds: at most 5m"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_sentence(labels: str, sentence: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan_from_text(f"{SHORT}labels: {labels}\n", "p.yaml")
    assert len(refused.value.problems) == 1
    assert sentence in refused.value.problems[0]


def test_a_number_that_is_no_label_may_be_written_in_any_way() -> None:
    """What only labels care for is no mistake elsewhere."""
    plan_from_text(SHORT + "rules: {memory_growth: {tolerance: 0.050}}", "p.yaml")


def test_the_schema_agrees() -> None:
    """With what the plan takes and refuses, as far as a schema can say it."""
    validator = plan_validator()

    def holds(labels: str) -> bool:
        return validator.is_valid(parse(f"{SHORT}labels: {labels}\n", "p").data)

    assert holds('{release: "7.2", build: 9}')
    assert holds("{release: {command: [ssh, dut, show version], pattern: Version, timeout: 5s}}")
    assert holds("{release: {package: nginx, target: dut}}")
    assert holds("")
    refused = ("{release: 7.2}", "{Release: a}", "{release: {comand: [a]}}", "[a]", "release")
    assert not any(holds(labels) for labels in refused)
