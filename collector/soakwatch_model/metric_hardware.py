"""The catalogue's metrics of hardware: fans, power supplies, optics, voltages, and the limits that a device states.

A limit has the object of the reading that it limits. ``limit`` is where the maker calls it critical (an alarm, a
shutdown), ``warning`` where the maker only warns.
"""

from __future__ import annotations

from soakwatch_model.metric_entry import COUNTER, GAUGE, STATE, UP, WARNS, Metric, entry
from soakwatch_model.shown import Figures

_FAN, _SUPPLY, _OPTIC, _SENSOR = ("fan",), ("power_supply",), ("optic",), ("sensor",)
_COLD, _HOT = -100.0, 250.0  # Cel
_DARK, _BRIGHT = -60.0, 40.0  # dBm: 0.001 µW, 10 W
_WORDS = (
    ("limit.high", "highest {}, critical beyond it, as the device states it"),
    ("limit.low", "lowest {}, critical below it, as the device states it"),
    ("warning.high", "{} above which the device warns"),
    ("warning.low", "{} below which the device warns"),
)
_ALL = tuple(name for name, _ in _WORDS)


def _limits(
    metric: str,
    unit: str,
    what: str,
    labels: tuple[str, ...],
    low: float | None = 0.0,
    high: float | None = None,
    probe: str = "",
    reads: tuple[str, ...] = (),
) -> tuple[Metric, ...]:
    """The limits of a metric; those in ``reads`` come from an agent's ``probe``."""
    return tuple(
        entry(
            f"{metric}.{name}",
            unit,
            STATE,
            words.format(what),
            *labels,
            low=low,
            high=high,
            every=3600,
            probe=probe if name in reads else "",
        )
        for name, words in _WORDS
    )


HARDWARE: tuple[Metric, ...] = (
    entry(
        "system.power",
        "W",
        GAUGE,
        "electric power that a sensor or a supply measures",
        "sensor",
        high=1e6,
        worse=UP,
        words="power",
        figures=Figures(220, ("system.power", "system.power / load.rx.packet.rate", "system.power / load.rx.packets")),
        probe="power",
        trend=WARNS,
        mild="it follows the work, and what overheats fails",
    ),
    entry(
        "system.energy",
        "J",
        COUNTER,
        "electric energy that a sensor has counted",
        "sensor",
        worse=UP,
        statistic="rate",
        probe="power",
        unjudged="counts system.power, which is judged",
    ),
    entry(
        "hardware.fan.up",
        "1",
        STATE,
        "1 while a fan works, 0 while it has failed or is gone",
        *_FAN,
        high=1.0,
        every=60,
        probe="fans",
    ),
    entry(
        "hardware.fan.speed",
        "{revolution}/min",
        GAUGE,
        "speed of a fan",
        *_FAN,
        high=100_000.0,
        every=60,
        words="fan speed",
        probe="fans",
    ),
    entry(
        "hardware.power_supply.up",
        "1",
        STATE,
        "1 while a power supply delivers, 0 while it has failed or is gone",
        *_SUPPLY,
        high=1.0,
        every=60,
    ),
    entry(
        "hardware.voltage",
        "V",
        GAUGE,
        "voltage of a sensor",
        *_SENSOR,
        low=-1000.0,
        high=1000.0,
        every=60,
        words="voltage",
        probe="fans",
    ),
    entry(
        "hardware.optic.rx_power",
        "dBm",
        GAUGE,
        "optical power received",
        *_OPTIC,
        low=_DARK,
        high=_BRIGHT,
        every=60,
        words="received optical power",
    ),
    entry(
        "hardware.optic.tx_power",
        "dBm",
        GAUGE,
        "optical power sent",
        *_OPTIC,
        low=_DARK,
        high=_BRIGHT,
        every=60,
        words="sent optical power",
    ),
    entry(
        "hardware.optic.bias", "A", GAUGE, "bias current of a laser", *_OPTIC, high=5.0, every=60, words="laser current"
    ),
    *_limits("system.temperature", "Cel", "temperature of a sensor", _SENSOR, _COLD, _HOT, "sensors", _ALL),
    *_limits(
        "hardware.fan.speed",
        "{revolution}/min",
        "speed of a fan",
        _FAN,
        high=100_000.0,
        probe="fans",
        reads=("limit.low",),
    ),
    *_limits(
        "hardware.voltage", "V", "voltage of a sensor", _SENSOR, -1000.0, 1000.0, "fans", ("limit.high", "limit.low")
    ),
    *_limits("hardware.optic.rx_power", "dBm", "received optical power", _OPTIC, _DARK, _BRIGHT),
    *_limits("hardware.optic.tx_power", "dBm", "sent optical power", _OPTIC, _DARK, _BRIGHT),
    *_limits("hardware.optic.bias", "A", "bias current of a laser", _OPTIC, high=5.0),
)
