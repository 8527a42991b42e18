"""Power, energy, fans, voltages and limits of sensors, out of trees as the kernel's drivers make them."""

from __future__ import annotations

from pathlib import Path

import pytest

from soakwatch_agent.context import SECOND, HostContext
from soakwatch_agent.probes import fans, power, sensors
from soakwatch_model.metric import BY_NAME, fault_of
from soakwatch_model.sample import Answer, object_labels

_RAPL, _CHIP = "sys/class/powercap/intel-rapl", "sys/class/hwmon/hwmon"


def _tree(folder: Path, files: dict[str, object]) -> HostContext:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n", encoding="ascii")
    return HostContext(str(folder))


def _values(answer: Answer) -> dict[tuple[str, str], float]:
    for sample in answer.samples:
        assert fault_of(sample.metric, sample.value) is None
        assert set(object_labels(sample.object)) == set(BY_NAME[sample.metric].labels)
    return {(s.metric, s.object.partition("=")[2]): s.value for s in answer.samples}


def test_rapl_counts_joules_over_its_wrap_and_tells_watts(tmp_path: Path) -> None:
    """A package and its memory, each with the name of its zone; the second door to the package is left out."""
    package = f"{_RAPL}:0"
    context = _tree(
        tmp_path,
        {
            f"{package}/name": "package-0",
            f"{package}/energy_uj": 262_000_000_000,
            f"{package}/max_energy_range_uj": 262_143_328_850,
            f"{package}:0/name": "dram",
            f"{package}:0/energy_uj": 1_000_000,
            f"{_RAPL}-mmio:0/name": "package-0",
            f"{_RAPL}-mmio:0/energy_uj": 5,
        },
    )
    probe = power.open_probe(context)
    assert _values(probe.read(SECOND)) == {
        ("system.energy", "rapl package-0"): 262_000,
        ("system.energy", "rapl package-0 dram"): 1,
    }
    _tree(tmp_path, {f"{package}/energy_uj": 100_000_000, f"{package}:0/energy_uj": 31_000_000})
    values = _values(probe.read(3 * SECOND))
    assert values["system.energy", "rapl package-0"] == pytest.approx(262_243.32885)
    assert values["system.power", "rapl package-0"] == pytest.approx(243.32885 / 2)
    assert values["system.power", "rapl package-0 dram"] == 15


@pytest.mark.parametrize(
    ("vendor", "unit_at", "energy_at"), [("GenuineIntel", 0x606, 0x611), ("AuthenticAMD", 0xC0010299, 0xC001029B)]
)
def test_without_powercap_the_registers_are_read(tmp_path: Path, vendor: str, unit_at: int, energy_at: int) -> None:
    """One of each package, in the unit that the processor states, over the wrap of 32 bits; powercap comes before."""
    topology = {f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": n // 2 for n in range(4)}
    context = _tree(tmp_path, {"proc/cpuinfo": f"processor\t: 0\nvendor_id\t: {vendor}", **topology})
    counts = {0: 0xFFFFFFFF - 2**14 + 1, 2: 5 * 2**14}  # a count is 2**-14 J
    for processor, count in counts.items():
        _registers(tmp_path, processor, {unit_at: 0xA0E03, energy_at: count})
    probe = power.open_probe(context)
    first = _values(probe.read(SECOND))
    assert first["system.energy", "rapl package-1"] == pytest.approx(5)
    _registers(tmp_path, 0, {energy_at: 9 * 2**14})
    _registers(tmp_path, 2, {energy_at: 25 * 2**14})
    values = _values(probe.read(3 * SECOND))
    assert values["system.power", "rapl package-0"] == pytest.approx((1 + 9) / 2)
    assert values["system.power", "rapl package-1"] == pytest.approx(20 / 2)
    _tree(tmp_path, {f"{_RAPL}:0/name": "package-0", f"{_RAPL}:0/energy_uj": 1_000_000})
    assert set(_values(power.open_probe(context).read(SECOND))) == {("system.energy", "rapl package-0")}


def _registers(root: Path, processor: int, values: dict[int, int]) -> None:
    path = root / f"dev/cpu/{processor}/msr"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        for register, value in values.items():
            file.seek(register)
            file.write(value.to_bytes(8, "little"))


def test_energy_that_only_root_may_read_is_said_once(tmp_path: Path) -> None:
    """What cannot be read is a note with the remedy; a machine without counters says nothing."""
    hidden = _tree(tmp_path / "hidden", {f"{_RAPL}:0/name": "package-0", f"{_RAPL}:1/name": "package-1"})
    probe = power.open_probe(hidden)
    (fault,) = probe.read(SECOND).faults
    assert "only root may read it" in fault.text
    assert probe.read(2 * SECOND).faults == ()
    assert power.open_probe(HostContext(str(tmp_path / "bare"))).read(SECOND) == Answer((), (), ())


def test_power_sensors_of_hwmon(tmp_path: Path) -> None:
    """A power supply on PMBus and AMD's energy counters, in watts and joules."""
    context = _tree(
        tmp_path,
        {
            f"{_CHIP}0/name": "pmbus",
            f"{_CHIP}0/power1_input": 131_500_000,
            f"{_CHIP}0/power1_average": 120_000_000,
            f"{_CHIP}0/power1_label": "pin",
            f"{_CHIP}1/name": "amd_energy",
            f"{_CHIP}1/energy1_input": 7_000_000,
            f"{_CHIP}1/energy1_label": "Esocket0",
        },
    )
    probe = power.open_probe(context)
    assert _values(probe.read(SECOND)) == {
        ("system.power", "pmbus pin"): 131.5,
        ("system.energy", "amd_energy Esocket0"): 7,
    }


def test_fans_and_voltages_with_limits(tmp_path: Path) -> None:
    """A server's controller states limits; the chip of a PC board has limits and voltages that nobody set up."""
    files: dict[str, object] = {}
    for number, chip in enumerate(("pmbus", "nct6775")):
        files |= {
            f"{_CHIP}{number}/name": chip,
            f"{_CHIP}{number}/fan1_input": 5400,
            f"{_CHIP}{number}/fan1_min": 1000,
            f"{_CHIP}{number}/fan1_fault": number,
            f"{_CHIP}{number}/in1_input": 12_080,
            f"{_CHIP}{number}/in1_crit": 13_200,
            f"{_CHIP}{number}/in1_lcrit": 0,
        }
    assert _values(fans.open_probe(_tree(tmp_path, files)).read(SECOND)) == {
        ("hardware.fan.speed", "pmbus fan1"): 5400,
        ("hardware.fan.speed.limit.low", "pmbus fan1"): 1000,
        ("hardware.fan.up", "pmbus fan1"): 1,
        ("hardware.voltage", "pmbus in1"): 12.08,
        ("hardware.voltage.limit.high", "pmbus in1"): 13.2,
        ("hardware.fan.speed", "nct6775 fan1"): 5400,
        ("hardware.fan.up", "nct6775 fan1"): 0,
    }


def test_temperatures_with_the_limits_of_their_sensors(tmp_path: Path) -> None:
    """Critical and warning temperatures are told; unset ones (0, 127, 65261 degrees) and those of a board chip not."""
    files: dict[str, object] = {}
    for number, (chip, most, critical) in enumerate(
        [("coretemp", 80_000, 100_000), ("nvme", 65_261_850, 84_850), ("jc42", 0, 127_000), ("it8728", 60_000, 70_000)]
    ):
        files |= {
            f"{_CHIP}{number}/name": chip,
            f"{_CHIP}{number}/temp1_input": 45_000,
            f"{_CHIP}{number}/temp1_max": most,
            f"{_CHIP}{number}/temp1_crit": critical,
        }
    answer = sensors.open_probe(_tree(tmp_path, files)).read(SECOND)
    values = {key: value for key, value in _values(answer).items() if ".limit." in key[0] or ".warning." in key[0]}
    assert values == {
        ("system.temperature.limit.high", "coretemp temp1"): 100,
        ("system.temperature.warning.high", "coretemp temp1"): 80,
        ("system.temperature.limit.high", "nvme temp1"): 84.85,
    }
