"""A management controller over Redfish: its double speaks real HTTP on a socket."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch_model.sample import Answer
from soakwatch_testing.redfish_bmc import RedfishBmc, redfish_bmc, resources

Polls = Callable[..., list[Answer]]


class Files(Protocol):
    """A certificate and its key as files."""

    certificate: Path

    def server(self) -> ssl.SSLContext: ...


def _values(answer: Answer) -> dict[str, float]:
    return {f"{s.metric} {s.object.partition('=')[2]}": s.value for s in answer.samples}


def test_power_and_thermal_with_their_limits(polls: Polls) -> None:
    """Watts, supplies, fans, temperatures and voltages; limits come once, an absent sensor not at all."""
    with redfish_bmc(RedfishBmc()) as bmc:
        first, second = polls("redfish", {"url": f"http://127.0.0.1:{bmc.port}"}, 2)
    limits = {
        "hardware.voltage.limit.high VRM1": 13,
        "system.temperature.limit.high Inlet": 45,
        "system.temperature.warning.high Inlet": 42,
        "hardware.fan.speed.limit.low Fan 1": 600,
    }
    readings = {
        "system.power total": 344,
        "hardware.power_supply.up PSU 1": 1,
        "system.power PSU 1 input": 172,
        "hardware.power_supply.up PSU 2": 1,
        "system.power PSU 2 input": 172,
        "hardware.voltage VRM1": 12.1,
        "system.temperature Inlet": 21,
        "hardware.fan.up Fan 1": 1,
        "hardware.fan.speed Fan 1": 5400,
        "hardware.fan.up Fan 2": 1,
    }
    assert _values(first) == readings | limits
    assert _values(second) == readings
    assert first.faults == ()


@pytest.mark.parametrize("expands", [False, True])
def test_subsystems_and_sensors(polls: Polls, expands: bool) -> None:
    """The newer resources, each sensor by itself or all in one answer."""
    with redfish_bmc(RedfishBmc(resources(old=False, expands=expands))) as bmc:
        (answer,) = polls("redfish", {"url": f"http://127.0.0.1:{bmc.port}"})
        requests = len(bmc.asked)
    assert _values(answer) == {
        "hardware.power_supply.up PSU 1": 1,
        "hardware.power_supply.up PSU 2": 1,
        "hardware.fan.up Fan 1": 1,
        "hardware.fan.up Fan 2": 1,
        "system.temperature Inlet": 21.5,
        "system.power Total": 344,
        "system.energy Meter": 7_200_000,
        "hardware.fan.speed Fan1": 5400,
        "system.temperature.limit.high Inlet": 45,
    }
    assert requests == (7 if expands else 17)


def test_a_supply_that_is_pulled_was_there(polls: Polls) -> None:
    """Absent from the first look it is no supply; absent later it is one that is gone; critical health is a failure."""
    tree = resources()
    supplies = tree["/redfish/v1/Chassis/1/Power"]["PowerSupplies"]
    assert isinstance(supplies, list)
    supplies[0]["Status"] = {"State": "Enabled", "Health": "Critical"}
    supplies[1] = {"Name": "PSU 2", "Status": {"State": "Absent"}}
    with redfish_bmc(RedfishBmc(tree)) as bmc:
        (answer,) = polls("redfish", {"url": f"http://127.0.0.1:{bmc.port}"})
    values = _values(answer)
    assert values["hardware.power_supply.up PSU 1"] == 0
    assert "hardware.power_supply.up PSU 2" not in values


def test_nonsense_is_a_fault_and_not_a_reading(polls: Polls) -> None:
    """A sensor that is on and gives null, text or 0 K says why it has no sample."""
    tree = resources()
    tree["/redfish/v1/Chassis/1/Thermal"] = {
        "Temperatures": [
            {"Name": name, "ReadingCelsius": value, "Status": {"State": "Enabled"}}
            for name, value in (("a", None), ("b", "hot"), ("c", -273.15))
        ]
    }
    with redfish_bmc(RedfishBmc(tree)) as bmc:
        (answer,) = polls("redfish", {"url": f"http://127.0.0.1:{bmc.port}"})
    assert [fault.object for fault in answer.faults] == ["sensor=a", "sensor=b", "sensor=c"]
    assert not [s for s in answer.samples if s.metric == "system.temperature"]


def test_it_logs_in_over_tls(polls: Polls, certificate: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name and password, or by a session's token; a wrong one is refused in a sentence that holds no secret."""
    monkeypatch.setenv("BMC_SECRET", "quite-secret")
    bmc = RedfishBmc(login=("reader", "quite-secret"), token="quite-secret")
    with redfish_bmc(bmc, certificate.server()):
        keys = {"url": f"https://127.0.0.1:{bmc.port}", "ca": str(certificate.certificate)}
        for login in (
            {"user": "reader", "password": "env:BMC_SECRET"},
            {"headers": {"X-Auth-Token": "env:BMC_SECRET"}},
        ):
            assert polls("redfish", keys | login)[0].samples
        bmc.login = bmc.token = None
        bmc.login = ("reader", "other")
        with pytest.raises(LoginRefusedError) as refused:
            polls("redfish", keys | {"user": "reader", "password": "env:BMC_SECRET"})
    assert "refuses the login (401)" in str(refused.value)
    assert "quite-secret" not in str(refused.value)


def test_what_is_no_redfish_service_says_so(polls: Polls) -> None:
    """A wrong path in the plan, a service without chassis, one that leads elsewhere, and one without readings."""
    with pytest.raises(PlanError, match="url ends with the host"):
        polls("redfish", {"url": "https://127.0.0.1/redfish/v1"})
    elsewhere = resources()
    elsewhere["/redfish/v1"]["Chassis"] = {"@odata.id": "@evil.example/redfish"}
    empty = resources()
    empty["/redfish/v1/Chassis/1"] = {"Id": "1"}
    cases: list[tuple[dict[str, dict[str, object]], str]] = [
        ({}, "with status 404"),
        ({"/redfish/v1": {"Name": "x"}}, "names no chassis"),
        (elsewhere, "no resource of it"),
        (empty, "has no reading"),
    ]
    for tree, sentence in cases:
        with redfish_bmc(RedfishBmc(tree)) as bmc, pytest.raises(SourceError, match=sentence):
            polls("redfish", {"url": f"http://127.0.0.1:{bmc.port}"})
