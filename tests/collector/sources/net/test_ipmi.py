"""A management controller over IPMI: OpenIPMI's simulator on loopback, and DCMI answered before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch_model.sample import Answer
from soakwatch_testing.ipmi_bmc import SENSORS, IpmiBmc, ipmi_bmc, with_dcmi

Polls = Callable[..., list[Answer]]


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IpmiBmc]:
    """The simulator, for tests that change nothing in it."""
    needs("ipmi_sim", "ipmitool")
    with ipmi_bmc(tmp_path_factory.mktemp("ipmi") / "bmc", "quite-secret") as served:
        yield served


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_SECRET", "quite-secret")
    monkeypatch.setenv("WRONG", "not-that-one")


def _keys(port: int, **keys: object) -> dict[str, object]:
    return {"host": "127.0.0.1", "port": port, "user": "reader", "password": "env:BMC_SECRET", "cipher": 3, **keys}


def _values(answer: Answer) -> dict[str, float]:
    return {f"{s.metric} {s.object.partition('=')[2]}": s.value for s in answer.samples}


READINGS = {
    "system.temperature Inlet Temp": 23,
    "system.temperature Temp 3.1": 60,
    "hardware.fan.speed FAN1": 5400,
    "hardware.voltage 12V": 12.1,
    "system.power PS1 Input Power": 172,
    "system.power PS2 Input Power": 168,
    "hardware.power_supply.up PS1 Status": 1,
    "hardware.power_supply.up PS2 Status": 1,
}


def test_sensors_with_their_limits_and_watts_of_the_supplies(polls: Polls, bmc: IpmiBmc) -> None:
    """Without DCMI watts are those of the supplies; limits come once; what is absent has no fault."""
    first, second = polls("ipmi", _keys(bmc.port), 2)
    limits = {
        "system.temperature.warning.high Inlet Temp": 42,
        "system.temperature.limit.high Inlet Temp": 45,
        "system.temperature.limit.high Temp 3.1": 95,
        "hardware.fan.speed.limit.low FAN1": 600,
        "hardware.voltage.limit.high 12V": 13.2,
        "hardware.voltage.limit.low 12V": 10.8,
    }
    assert _values(first) == READINGS | limits
    assert _values(second) == READINGS
    assert first.faults == ()


@pytest.mark.parametrize("on", [True, False])
def test_watts_of_dcmi(polls: Polls, bmc: IpmiBmc, on: bool) -> None:
    """The whole machine's; a measurement that is switched off is a fault and no 0 W."""
    with with_dcmi(bmc.port, lambda: 344 if on else None) as port:
        (answer,) = polls("ipmi", _keys(port, cipher=1))
    values = _values(answer)
    if on:
        assert values["system.power total"] == 344
        assert answer.faults == ()
    else:
        assert "system.power total" not in values
        assert [fault.text for fault in answer.faults] == ["the controller's power measurement (DCMI) is not active"]
    assert READINGS.items() <= values.items()


def test_a_controller_without_watts_says_so(polls: Polls, tmp_path: Path) -> None:
    """Neither DCMI nor a sensor in watts: a fault of the total, beside the readings that are there."""
    needs("ipmi_sim", "ipmitool")
    sensors = [each for each in SENSORS if each.unit != 6]
    with ipmi_bmc(tmp_path / "bmc", "quite-secret", sensors) as bmc:
        (answer,) = polls("ipmi", _keys(bmc.port))
    (fault,) = answer.faults
    assert (fault.metric, fault.object) == ("system.power", "sensor=total")
    assert fault.text.startswith("the controller has no power reading of DCMI (Insufficient privilege level")
    assert fault.text.endswith("and it has no sensor in watts with a reading")


@pytest.mark.parametrize(
    ("keys", "error", "sentence"),
    [
        ({"password": "env:WRONG"}, LoginRefusedError, "refuses the login: the password is wrong"),
        ({"user": "nobody"}, LoginRefusedError, "refuses the login: it has no such user"),
        ({"cipher": 17}, SourceError, "does not have that cipher suite: set cipher to 3 or 17"),
    ],
)
def test_who_is_not_let_in_is_told_why(
    polls: Polls, bmc: IpmiBmc, keys: dict[str, object], error: type[Exception], sentence: str
) -> None:
    """In one sentence with the place and without the password."""
    with pytest.raises(error) as refused:
        polls("ipmi", _keys(bmc.port, **keys))
    assert str(refused.value) == f"127.0.0.1:{bmc.port} {sentence}"


def test_what_answers_no_ipmi_says_so(polls: Polls, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where nothing is, and passwords that no controller can have."""
    needs("ipmitool")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:9 does not answer over IPMI: check host and port"):
        polls("ipmi", _keys(9))
    for password, why in (("quite-secret-and-longer", "is longer than IPMI's 20 bytes"), ("a\tb", "a character")):
        monkeypatch.setenv("BMC_SECRET", password)
        with pytest.raises(PlanError, match=why) as refused:
            polls("ipmi", _keys(9))
        assert password not in str(refused.value)


def test_without_the_program_it_names_the_package(polls: Polls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match="install the package ipmitool"):
        polls("ipmi", _keys(9))


def test_the_password_is_on_no_command_line(polls: Polls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that shows its arguments and its environment is asked instead of ipmitool."""
    program = tmp_path / "ipmitool"
    shows = f'echo "$@" >> {tmp_path}/words; echo "$IPMITOOL_PASSWORD" > {tmp_path}/said'
    program.write_text(f"#!/bin/sh\n{shows}\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SourceError):
        polls("ipmi", _keys(9))
    assert "quite-secret" not in (tmp_path / "words").read_text()
    assert (tmp_path / "said").read_text() == "quite-secret\n"
