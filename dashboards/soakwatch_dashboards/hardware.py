"""Power and hardware of one device: watts, temperatures, fans, supplies and optics, with their limits."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Panel

from soakwatch_dashboards.board import Row, Section
from soakwatch_dashboards.common import HERE, LOAD_LINES, load
from soakwatch_dashboards.influx import TIME, Query, by_labels, edge, series
from soakwatch_dashboards.panels import Column, limit_line, lines, of_unit, rows, strip
from soakwatch_dashboards.style import ORANGE, UPNESS, in_colour

_TOLD_SELDOM = DynamicConfigValue("custom.spanNulls", True)  # noqa: FBT003 - its own signature has no names
"""Sources report limits hourly and on change: a limit holds until it is reported again."""
_EDGES = {
    "^(lowest|highest) limit": [*limit_line(), _TOLD_SELDOM],
    "^(lowest|highest) warning": [*limit_line(), _TOLD_SELDOM, in_colour(ORANGE)],
}
_OF_SENSORS = ("system.temperature", "celsius", "sensor")


def _power() -> Panel:
    """The power that the device draws, with the load."""
    return lines(
        "Power, with the load",
        "watt",
        [
            series("system.power", HERE, ("sensor",), alias="$tag_sensor"),
            series("system.energy", HERE, ("sensor",), alias="$tag_sensor, from its energy"),
            *load(),
        ],
        "Of each sensor: one may be a part of another. From a counter of joules: watts are its rate.",
        LOAD_LINES,
    )


def hardware() -> Section:
    """Temperatures, fans, supplies, optics and voltages."""
    warm = lines(
        "Temperature",
        "celsius",
        [
            series("system.temperature", HERE, ("sensor",)),
            edge("system.temperature.limit.high", HERE, ("sensor",), "lowest limit of a sensor", of="min"),
            edge("system.temperature.warning.high", HERE, ("sensor",), "lowest warning of a sensor", of="min"),
        ],
        "Of each sensor; red: the limit of the sensor that has the lowest, the table has those of all.",
        _EDGES,
        below_zero=True,
    )
    fans = lines(
        "Fans: speed",
        "rotrpm",
        [
            series("hardware.fan.speed", HERE, ("fan",), of="min"),
            edge("hardware.fan.speed.limit.low", HERE, ("fan",), "highest limit of a fan", of="max"),
        ],
        "The slowest of each interval; red: the limit of the fan that has the highest.",
        _EDGES,
    )
    light = lines(
        "Optics: power and laser current",
        "dBm",
        [
            series("hardware.optic.rx_power", HERE, ("optic",), of="min", alias="received $tag_optic"),
            series("hardware.optic.tx_power", HERE, ("optic",), of="min", alias="sent $tag_optic"),
            edge("hardware.optic.rx_power.limit.low", HERE, ("optic",), "highest limit of received", of="max"),
            series("hardware.optic.bias", HERE, ("optic",), alias="laser $tag_optic"),
        ],
        "The weakest light of each interval; red: the limit of the optic that has the highest; on the right amperes.",
        {**_EDGES, "^laser ": of_unit("amp")},
        below_zero=True,
    )
    return Section(
        "Hardware: power, temperatures, fans, supplies, optics, voltages",
        [
            Row(8, [(24, _power())]),
            Row(9, [(12, warm), (12, _table("Temperatures and their limits", *_OF_SENSORS, high=True))]),
            Row(6, [(12, _works("Fans that work", "fan")), (12, _works("Power supplies that work", "power_supply"))]),
            Row(9, [(12, fans), (12, light)]),
            Row(
                8,
                [
                    (
                        12,
                        _table(
                            "Optics, received power and its limits",
                            "hardware.optic.rx_power",
                            "dBm",
                            "optic",
                            high=False,
                        ),
                    ),
                    (12, _table("Voltages and their limits", "hardware.voltage", "volt", "sensor", high=False)),
                ],
            ),
        ],
    )


def _works(title: str, part: str) -> Panel:
    query = Query(
        f'SELECT min("value") AS "up" FROM "hardware.{part}.up" WHERE {HERE} AND {TIME}'
        f' GROUP BY time($__interval), "{part}" fill(null)',
        f"$tag_{part}",
    )
    return strip(title, query, UPNESS, "Red: it failed or was pulled. Sources tell this as seldom as once a minute.")


def _table(title: str, metric: str, unit: str, label: str, *, high: bool) -> Panel:
    """A row for each object: now, the worst extreme, and the limits in the run, which are reported only hourly."""
    worst, word = ("max", "highest") if high else ("min", "lowest")
    queries = [
        by_labels((name,), f'SELECT {of}("value") AS "{name}" FROM "{metric}" WHERE {HERE} AND {TIME}', (label,))
        for name, of in (("now", "last"), (word, worst))
    ]
    queries += [
        by_labels((name,), f'SELECT last("value") AS "{name}" FROM "{metric}.{suffix}" WHERE {HERE}', (label,))
        for name, suffix in (("upper limit", "limit.high"), ("lower limit", "limit.low"))
    ]
    columns = {
        "Time": Column(hidden=True),
        label: Column(label.capitalize()),
        "now": Column("Now", unit, width=90),
        word: Column(f"At the {word}", unit, width=120),
        "upper limit": Column("Upper limit", unit, width=110),
        "lower limit": Column("Lower limit", unit, width=110),
    }
    about = "Limits are critical ones that the device states; none: it states none."
    return rows(title, queries, columns, about, sorted_by=("Now",))
