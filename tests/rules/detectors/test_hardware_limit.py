"""hardware_limit: sensors against their own limits, fans, power supplies and optics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, TargetFacts
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.hardware_limit import HardwareLimit
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import times

S = 10**9
_HOT, _FAN, _SUPPLY, _RX, _TX, _BIAS = (
    "system.temperature",
    "hardware.fan.up",
    "hardware.power_supply.up",
    "hardware.optic.rx_power",
    "hardware.optic.tx_power",
    "hardware.optic.bias",
)


def _made(
    name: str,
    metric: str = _HOT,
    usual: float = 45.0,
    noise: float = 1.0,
    there: float | None = None,
    begin: float = 0.5,
    end: float = 0.6,
    readings_only: int = 0,
    limits: dict[str, float] | None = None,
    expect: dict[str, int] | None = None,
) -> Scenario:
    """A reading that is somewhere else in a part of the run (or for a few readings), with limits of its own."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        value = usual + noise * rng.standard_normal(t.size)
        share = t / (hours * 3600)
        inside = (share >= begin) & (share < end)
        if readings_only:
            inside = np.arange(t.size) == round(begin * t.size)
        if there is not None:
            value[inside] = there + noise * rng.standard_normal(int(inside.sum()))
        window = Window(0, round(hours * 3600 * S))
        of = "sensor=inlet" if metric == _HOT else "optic=xe-0/0/1" if "optic" in metric else "fan=1"
        stated = [
            replace(readings(f"{metric}.{key}", np.array([limit]), 3600.0, object=of), cadence_s=3600.0)
            for key, limit in (limits or {}).items()
        ]
        edges = (round((begin - 0.01) * window.end_ns), round((end + 0.01) * window.end_ns))
        events = (Event("maintenance", "dut", "", *edges, expect=expect),) if expect else ()
        series = readings(metric, value, apart, object=of)
        return Signal(Case("dut", of, window, (series, *stated), events=events), Truth())

    return Scenario("hardware", name, make, cadence_s=60.0)


_TEMPERATURE = {"limit.high": 75.0, "warning.high": 65.0}
_LIGHT = {"limit.low": -14.0, "warning.low": -12.0, "limit.high": 1.0, "warning.high": 0.0}

SCENARIOS = (
    _made("a cool sensor", limits=_TEMPERATURE),
    _made("near its warning", usual=60.0, limits=_TEMPERATURE),
    _made("no limit of its own"),
    _made("above its limit for 2 h", there=80.0, limits=_TEMPERATURE),
    _made("above its limit to the end", there=80.0, end=1.0, limits=_TEMPERATURE),
    _made("above its warning for 2 h", there=70.0, limits=_TEMPERATURE),
    _made("one reading of 120 °C", there=120.0, readings_only=1, limits=_TEMPERATURE),
    _made("above its limit the whole time", usual=90.0, limits=_TEMPERATURE),
    _made("a highest temperature of 0", limits={"limit.high": 0.0}),
    _made("the limits changed places", limits={"limit.high": -10.0, "limit.low": 90.0}),
    _made("hot, announced", there=80.0, limits=_TEMPERATURE, expect={"hardware.fault": 1}),
    _made("a fan that works", _FAN, 1.0, 0.0),
    _made("a fan that fails for 2 h", _FAN, 1.0, 0.0, there=0.0),
    _made("a supply that fails to the end", _SUPPLY, 1.0, 0.0, there=0.0, end=1.0),
    _made("a supply that was never connected", _SUPPLY, 0.0, 0.0),
    _made("a supply pulled, announced", _SUPPLY, 1.0, 0.0, there=0.0, expect={"hardware.fault": 1}),
    _made("a link with light", _RX, -4.0, 0.1, limits=_LIGHT),
    _made("light fades below the alarm", _RX, -4.0, 0.1, there=-18.0, limits=_LIGHT),
    _made("no light the whole time", _RX, -40.0, 0.0, limits=_LIGHT),
    _made("light lost in a failover", _RX, -4.0, 0.1, there=-40.0, limits=_LIGHT, expect={"link.down": 1}),
    _made("light lost to the end", _RX, -4.0, 0.1, there=-40.0, end=1.0, limits=_LIGHT),
    _made("light lost, no alarm stated", _RX, -4.0, 0.1, there=-40.0),
    _made("light without an alarm", _RX, -4.0, 0.1),
    _made("a laser that is shut", _TX, -2.0, 0.1, there=-40.0, limits=_LIGHT),
    _made("all limits 0", _BIAS, 0.006, 1e-5, limits=dict.fromkeys(_LIGHT, 0.0)),
)

OUTCOMES = """
hardware | hardware_limit
a cool sensor | P
near its warning | P
no limit of its own | N
above its limit for 2 h | F
above its limit to the end | F
above its warning for 2 h | W
one reading of 120 °C | W
above its limit the whole time | W
a highest temperature of 0 | N
the limits changed places | N
hot, announced | P
a fan that works | P
a fan that fails for 2 h | F
a supply that fails to the end | F
a supply that was never connected | W
a supply pulled, announced | P
a link with light | P
light fades below the alarm | F
no light the whole time | N
light lost in a failover | P
light lost to the end | F
light lost, no alarm stated | F
light without an alarm | N
a laser that is shut | W
all limits 0 | N
"""


def _series(metric: str, *values: float, of: str = "sensor=inlet") -> Series:
    return readings(metric, np.array(values, dtype=np.float64), 60.0, object=of)


def _judge(*series: Series, role: str = "dut", events: tuple[Event, ...] = ()) -> Finding:
    window = Window(0, len(series[0]) * 60 * S)
    return HardwareLimit().judge(Case("dut", series[0].object, window, series, events=events, role=role))[0]


def test_it_says_whose_limit_was_passed_and_when() -> None:
    """Subject, number, limit and time stand in the sentence; the mark has the stretch."""
    finding = _judge(_series(_HOT, *[50] * 10, 78, 79, *[50] * 8), _series(f"{_HOT}.limit.high", 75))
    assert finding.outcome is Outcome.FAIL
    assert finding.reason == (
        "temperature inlet: 79 °C, above its limit of 75 °C from 1970-01-01 00:10:00 UTC for 2 min"
    )
    assert (finding.measured, finding.limit, finding.unit) == (79, 75, "Cel")
    assert [(mark.begin_ns, mark.end_ns) for mark in finding.marks] == [(600 * S, 720 * S)]


def test_a_limit_that_moves_is_the_one_in_force() -> None:
    """A fan whose lowest speed was raised later ran well before: each reading has the limit of its time."""
    fan = "fan=1"
    speed = _series("hardware.fan.speed", *[3000.0] * 5, *[6000.0] * 5, of=fan)
    least = _series("hardware.fan.speed.limit.low", *[2000.0] * 5, *[5000.0] * 5, of=fan)
    assert _judge(speed, least).outcome is Outcome.PASS
    slow = _series("hardware.fan.speed", *[3000.0] * 10, of=fan)
    assert _judge(slow, least).outcome is Outcome.FAIL


def test_light_that_is_lost_fails_unless_its_interface_was_shut() -> None:
    """Shut is shut: for as long as the interface named by the optic was administratively down, and no other one."""
    optic = "optic=Ethernet1/1 Lane 1 Receive Power Sensor"
    light = _series(_RX, *[-4.0] * 10, *[-40.0] * 10, of=optic)
    series = (light, _series(f"{_RX}.limit.low", -14.0, of=optic))
    case = Case("dut", optic, Window(0, 1200 * S), series)
    finding = HardwareLimit().judge(case)[0]
    assert finding.outcome is Outcome.FAIL
    assert finding.reason == (
        "received optical power Ethernet1/1 Lane 1 Receive Power Sensor: no light (-40 dBm, below its limit of "
        "-14 dBm) from 1970-01-01 00:10:00 UTC to the end, 10 min"
    )
    whole = (Window(590 * S, 1200 * S),)
    assert HardwareLimit().judge(replace(case, facts=TargetFacts(shut={"Eth1/1": whole})))[0].outcome is Outcome.PASS
    assert (
        HardwareLimit().judge(replace(case, facts=TargetFacts(shut={"Ethernet1/11": whole, "Vlan1": whole})))[0].outcome
        is Outcome.FAIL
    )
    brief = (Window(590 * S, 800 * S),)
    assert (
        HardwareLimit().judge(replace(case, facts=TargetFacts(shut={"Ethernet1/1": brief})))[0].outcome is Outcome.FAIL
    )


def test_nonsense_is_no_reading() -> None:
    """-866597556 °C, 0 K and 65535 °C are left out, whatever the limits are."""
    wild = [-866597556.0, -273.15, 65535.0] * 2
    finding = _judge(_series(_HOT, *[50] * 10, *wild, *[50] * 10), _series(f"{_HOT}.limit.high", 75))
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 50)


@pytest.mark.parametrize("role", ["generator", "monitor"])
def test_other_hosts_warn(role: str) -> None:
    """A generator that is too hot is not the device's fault."""
    hot = _series(_HOT, *[50] * 10, *[90] * 10), _series(f"{_HOT}.limit.high", 75)
    assert _judge(*hot, role=role).outcome is Outcome.WARN


def test_a_supply_that_stays_away_after_its_maintenance_fails() -> None:
    """The announcement excuses until its deadline, and no longer."""
    pulled = _series(_SUPPLY, *[1] * 10, *[0] * 10, of="power_supply=2")
    within = Event("maintenance", "dut", "", 590 * S, None, expect={"hardware.fault": 1}, deadline_ns=720 * S)
    finding = _judge(pulled, events=(within,))
    assert finding.outcome is Outcome.FAIL
    assert finding.reason == "power supply 2: it did not work from 1970-01-01 00:10:00 UTC to the end, 10 min"
    assert _judge(pulled, events=(replace(within, deadline_ns=None),)).outcome is Outcome.PASS


def test_too_little_is_open() -> None:
    """One reading proves nothing; a limit without a reading is no case of its own."""
    finding = _judge(_series(_HOT, 50), _series(f"{_HOT}.limit.high", 75))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    alone = _series(f"{_HOT}.limit.high", 75)
    assert HardwareLimit().judge(Case("dut", alone.object, Window(0, 60 * S), (alone,))) == ()


def test_a_parameter_outside_its_range_is_refused() -> None:
    """No reading at all cannot be asked."""
    with pytest.raises(ValueError, match="use 1 or more"):
        HardwareLimit(needed=0)
