"""What a plan allows to be taken at suspicion."""

from __future__ import annotations

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.engine.diagnosing import allowance_of
from soakwatch.plan import plan_from_text

TARGETS = "duration: 1h\ntargets: {dut: {sources: [local]}}\n"


def test_nothing_is_taken_unless_it_is_allowed() -> None:
    """Without the key, and in the run of a drill."""
    assert plan_from_text(TARGETS, "p.yaml").diagnose is None
    assert plan_from_text(f"{TARGETS}diagnose: suspicion", "p.yaml").bare(60).diagnose is None


def test_the_key_has_its_bounds() -> None:
    """In short and in full."""
    short = plan_from_text(f"{TARGETS}diagnose: suspicion", "p.yaml").diagnose
    assert short is not None
    assert (short.at_most, short.stop_s, short.debugger, short.pprof) == (3, 1.0, False, [])
    text = "diagnose: {on: suspicion, at_most: 2, stop_at_most: 0s, debugger: true, pprof: 'http://127.0.0.1:6060'}"
    whole = plan_from_text(TARGETS + text, "p.yaml").diagnose
    assert whole is not None
    allowed = allowance_of(whole, last=True)
    assert (allowed.stop_s, allowed.debugger, allowed.pprof, allowed.last) == (
        0,
        True,
        ("http://127.0.0.1:6060",),
        True,
    )


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("diagnose: always", "p.yaml:3:11: diagnose: expected 'suspicion', found 'always'"),
        (
            "diagnose: {on: suspicion, stop_at_most: 1m}",
            "p.yaml:3:41: stop_at_most: '1m' is out of bounds: at most 10s",
        ),
        ("diagnose: {on: suspicion, pprof: [localhost]}", "p.yaml:3:35: diagnose: pprof: this is not a web address"),
        ("diagnose: {on: suspicion, at_most: 0}", "p.yaml:3:36: at_most: the number 0 is out of bounds: at least 1"),
    ],
)
def test_what_is_wrong_has_its_place(key: str, wrong: str) -> None:
    """Line and column, and what is meant."""
    with pytest.raises(PlanError) as refused:
        plan_from_text(TARGETS + key, "p.yaml")
    assert wrong in str(refused.value)


def test_a_device_at_which_nobody_can_look_is_refused() -> None:
    """By SNMP there is no process to look at; a generator is not looked at either."""
    sources = "[{snmp: {host: 198.18.0.1, version: 2c, community: env:X}}]"
    text = f"duration: 1h\ntargets: {{dut: {{sources: {sources}}}}}\ndiagnose: suspicion"
    with pytest.raises(PlanError, match="no target with the role dut is polled by local, ssh or an agent over SSH"):
        plan_from_text(text, "p.yaml")
