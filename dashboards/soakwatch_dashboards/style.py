"""The look of the dashboards: one colour for one meaning, Grafana's units for the catalogue's, sizes legible from 3
m."""

from __future__ import annotations

from collections.abc import Mapping

from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import (
    DashboardSpecialValueMapOptions,
    DynamicConfigValue,
    FieldColorModeId,
    SpecialValueMap,
    SpecialValueMatch,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from soakwatch_model.metric import BY_NAME

GREEN, YELLOW, ORANGE, RED, BLUE, GREY = "#3D9A50", "#E0B400", "#F2812B", "#D4353B", "#3274D9", "#7B8087"
LOAD = "#8AB8FF"
"""The generator's lines, on every dashboard."""

PURPLE = "#8F3BB8"
OUTCOMES = {
    "-3": ("STALE", PURPLE),
    "-2": ("NOT JUDGED", GREY),
    "-1": ("RUNNING", BLUE),
    "0": ("PASS", GREEN),
    "1": ("INCONCLUSIVE", ORANGE),
    "2": ("WARN", YELLOW),
    "3": ("FAIL", RED),
}
"""Words for the field ``rank`` of findings and verdicts; higher is worse, so that tables sort by it. The queries make
STALE: a run that says it runs, but whose newest reading is too old."""
STATES = {
    "fail": ("FAIL", RED),
    "warn": ("WARN", YELLOW),
    "inconclusive": ("inconclusive", ORANGE),
    "ok": ("ok", GREEN),
}
"""Words for the field ``state`` in the strip of rules."""
PHASES = {
    "baseline": ("baseline", "#56727F"),
    "ramp": ("ramp", "#8A6FB8"),
    "soak": ("soak", BLUE),
    "spike": ("spike", ORANGE),
    "stress": ("stress", ORANGE),
    "recovery": ("recovery", "#2E9E97"),
    "cooldown": ("cooldown", "#56727F"),
    "capacity": ("capacity", "#8A6FB8"),
    "no phase": ("no phase", "#44484D"),
    "no reading": ("no reading", PURPLE),
    "ended": ("ended", "#44484D"),
}
"""Words for the field ``state`` in the strip of phases."""
ANSWERED = {"0": ("lost", RED), "1": ("ok", GREEN)}
WRITABLE = {"0": ("READ-ONLY", RED), "1": ("ok", GREEN)}
UPNESS = {"0": ("DOWN", RED), "1": ("up", GREEN)}

PACKETS = "count:packets/s"
"""Grafana's ``pps`` takes SI prefixes: 0.03 packets/s would be 33 mp/s, which reads as mega."""
PER_SECOND = "count:/s"
"""Packets and requests on one plot."""
_UNITS = {
    "1": "percentunit",
    "By": "bytes",
    "s": "s",
    "bit/s": "bps",
    "{packet}/s": PACKETS,
    "{request}/s": "reqps",
    "Cel": "celsius",
    "W": "watt",
    "V": "volt",
    "A": "amp",
    "dBm": "dBm",
    "{revolution}/min": "rotrpm",
    "Hz": "hertz",
}
_RATES = {"By": "binBps", "J": "watt", "s": "percentunit", "{packet}": PACKETS, "{request}": "reqps"}
TITLE, SIZE = 18, 36
"""Font sizes of a stat in pixels: 12 and 23 mm on a screen with 1080 lines and 0.7 m height (55 inches). Legible from 3
m is 12 mm, 1/250 of the distance. Grafana always draws axes, legends and cells at 12 pixels, so a wall screen shows the
browser at 150 %, which makes them 18."""
TILE = 26
"""Font size of a tile on the wall, 39 pixels at 150 %."""
AXIS = 72
"""Width of each axis in pixels, so that the plots of a column align."""
STRIP_AXIS = AXIS + 16
"""The same for a strip of states: Grafana leaves 8 pixels next to its names, and 24 next to a plot's axis."""
LOAD_AXIS = 52
"""The load's axis has short numbers ("2.50 Mil"); its label takes 20 more."""


def unit_of(metric: str) -> str:
    """Grafana's unit for a metric as ``influx.series`` shows it; counters as rates.

    >>> unit_of("system.memory.usage"), unit_of("system.network.io"), unit_of("process.threads")
    ('bytes', 'binBps', 'short')
    """
    entry = BY_NAME[metric]
    if entry.kind == "counter":
        return _RATES.get(entry.unit, "cps")
    return _UNITS.get(entry.unit, "short")


def words(named: Mapping[str, tuple[str, str]]) -> list[ValueMapping]:
    """Numbers shown as coloured words."""
    return [
        ValueMap(
            {
                value: ValueMappingResult(text, colour, index=i)
                for i, (value, (text, colour)) in enumerate(named.items())
            }
        )
    ]


def text_words(named: Mapping[str, tuple[str, str]]) -> list[ValueMapping]:
    """Texts shown as coloured words, including the empty text."""
    empty = [
        SpecialValueMap(
            DashboardSpecialValueMapOptions(
                match=SpecialValueMatch.EMPTY, result=ValueMappingResult(text, colour, index=0)
            )
        )
        for value, (text, colour) in named.items()
        if not value
    ]
    return [*empty, *words({value: shown for value, shown in named.items() if value})]


def unknown(named: Mapping[str, tuple[str, str]] | None = None) -> list[ValueMapping]:
    """The same, and no value as a grey dash; otherwise it would have the lowest threshold's colour, mostly green."""
    nothing = SpecialValueMap(
        DashboardSpecialValueMapOptions(
            match=SpecialValueMatch.NULL_AND_NAN, result=ValueMappingResult("–", GREY, index=len(named or {}))
        )
    )
    return [*(words(named) if named else ()), nothing]


def steps(*limits: tuple[float | None, str]) -> ThresholdsConfig:
    """Colours by value, each from its threshold up; the first threshold is None."""
    return (
        ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(limit, colour) for limit, colour in limits])
    )


def by_value() -> FieldColor:
    """Colour by threshold."""
    return FieldColor().mode(FieldColorModeId.THRESHOLDS)


def fixed(colour: str) -> FieldColor:
    """One colour for the whole panel."""
    return FieldColor().mode(FieldColorModeId.FIXED).fixed_color(colour)


def in_colour(colour: str) -> DynamicConfigValue:
    """One colour for the lines of an override."""
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
