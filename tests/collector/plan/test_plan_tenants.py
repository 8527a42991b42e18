"""Tenants as a plan names them: what is whose, and a sentence with its place for each mistake."""

from __future__ import annotations

import pytest
from tests.collector.plan_validator import plan_validator

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text, plan_text

SHORT = "duration: 1h\ntargets: {dut: {sources: [local]}}\n"


def test_each_item_holds_what_all_of_its_labels_match() -> None:
    """A value, a glob or a list; one item or several; the plan of the record reads back to the same."""
    text = SHORT + 'tenants: {red: {target: "d*", interface: "eth1.*"}, blue: [{port: [0, 1]}, {target: dut, flow: b}]}'
    plan = plan_from_text(text, "p.yaml")
    red, blue = plan.tenants
    assert (red.name, blue.name) == ("red", "blue")
    assert red.has("dut", "interface=eth1.100,direction=receive")
    assert not red.has("dut", "interface=eth2,direction=receive")
    assert not red.has("tg", "interface=eth1.100")
    assert blue.has("tg", "port=1")
    assert blue.has("dut", "flow=b")
    assert not blue.has("tg", "flow=b")
    assert plan_from_text(plan_text(plan), "again") == plan
    assert plan_from_text(SHORT + "tenants:\n", "p.yaml").tenants == ()
    plan_validator().validate({"duration": "1h", "targets": {"dut": {"sources": ["local"]}}, "tenants": None})
    plan_validator().validate(
        {
            "duration": "1h",
            "targets": {"dut": {"sources": ["local"]}},
            "tenants": {"red": {"port": 0}, "blue": [{"flow": ["b*"]}]},
        },
    )


@pytest.mark.parametrize(
    ("tenants", "sentence"),
    [
        ("[red]", "3:10: tenants: expected names with what is theirs, such as {red: {target: tg, port: 0}}"),
        ("{red: {port: 0}}", "3:10: tenants: 1 cannot be compared with each other: name 2 to 64"),
        ("{red: {prot: 0}, blue: {port: 1}}", "3:17: tenants: red: there is no label 'prot'; did you mean 'port'?"),
        ("{red: {port: 0.5}, blue: {port: 1}}", "3:23: tenants: red: port is a value, a pattern such as"),
        ("{red: {}, blue: {port: 1}}", "tenants: red: expected labels of what is its own, such as"),
        ("{red: [], blue: {port: 1}}", "tenants: red: give 1 to 64 things that are its own"),
        ("{red: {target: dux}, blue: {port: 1}}", "there is no target 'dux'; did you mean 'dut'?"),
        ("{red: {port: 1}, blue: {port: 1}}", "3:33: tenants: blue and red have the same things"),
        ("{r d: {port: 0}, blue: {port: 1}}", "3:11: tenants: 'r d' cannot be used as a name"),
    ],
)
def test_mistakes_are_named_with_their_place(tenants: str, sentence: str) -> None:
    """Line and column of what is wrong, and what to write instead."""
    with pytest.raises(PlanError) as refused:
        plan_from_text(f"{SHORT}tenants: {tenants}", "p.yaml")
    assert sentence in str(refused.value)
