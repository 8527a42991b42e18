"""How the dashboards look: one colour for one meaning, Grafana's units for the catalogue's, sizes read from 3 m."""

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
"""The field ``rank`` of findings and verdicts as words: the worse, the higher, so that a table is sorted by it.
STALE is made by the queries: a run that says it goes on, and whose newest reading is too old."""
STATES = {
    "fail": ("FAIL", RED),
    "warn": ("WARN", YELLOW),
    "inconclusive": ("inconclusive", ORANGE),
    "ok": ("ok", GREEN),
}
"""The field ``state`` of a rule's strip."""
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
"""The field ``state`` of the strip of phases."""
ANSWERED = {"0": ("lost", RED), "1": ("ok", GREEN)}
WRITABLE = {"0": ("READ-ONLY", RED), "1": ("ok", GREEN)}
UPNESS = {"0": ("DOWN", RED), "1": ("up", GREEN)}

PACKETS = "count:packets/s"
"""Grafana's ``pps`` takes SI prefixes: 0.03 packets/s would be 33 mp/s, which reads as mega."""
PER_SECOND = "count:/s"
"""Packets and requests beside each other."""
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
"""Titles and figures of a stat in pixels: 12 and 23 mm on a screen of 1080 lines that is 0.7 m high
(55 inches). What is read from 3 m must be 12 mm high, 1/250 of the distance. Grafana draws axes, legends and cells in
12 pixels and has no option for it: a wall shows the browser at 150 %, which makes 18 of them."""
TILE = 26
"""A figure of the wall, whose 150 % make 39 of them."""
AXIS = 72
"""How wide each axis is, in pixels: the plots of one column begin and end at the same place."""
STRIP_AXIS = AXIS + 16
"""The same for a strip of states, beside whose names Grafana leaves 8 pixels, where a plot's axis has 24."""
LOAD_AXIS = 52
"""The axis of the load has short numbers ("2.50 Mil"), and what they count is written along it in 20 more."""


def unit_of(metric: str) -> str:
    """Grafana's unit for what ``influx.series`` shows of a metric: a counter's is that of its rate.

    >>> unit_of("system.memory.usage"), unit_of("system.network.io"), unit_of("process.threads")
    ('bytes', 'binBps', 'short')
    """
    entry = BY_NAME[metric]
    if entry.kind == "counter":
        return _RATES.get(entry.unit, "cps")
    return _UNITS.get(entry.unit, "short")


def words(named: Mapping[str, tuple[str, str]]) -> list[ValueMapping]:
    """Numbers that are shown as a word in a colour."""
    return [
        ValueMap(
            {
                value: ValueMappingResult(text, colour, index=i)
                for i, (value, (text, colour)) in enumerate(named.items())
            }
        )
    ]


def text_words(named: Mapping[str, tuple[str, str]]) -> list[ValueMapping]:
    """Texts that are shown as a word in a colour; the empty text is one."""
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
    """The same, and no value as a grey dash: without it, it has the colour of the lowest limit, mostly green."""
    nothing = SpecialValueMap(
        DashboardSpecialValueMapOptions(
            match=SpecialValueMatch.NULL_AND_NAN, result=ValueMappingResult("–", GREY, index=len(named or {}))
        )
    )
    return [*(words(named) if named else ()), nothing]


def steps(*limits: tuple[float | None, str]) -> ThresholdsConfig:
    """Colours by value: each from its limit up; the first limit is None."""
    return (
        ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(limit, colour) for limit, colour in limits])
    )


def by_value() -> FieldColor:
    """The colour of the limit that a value has passed."""
    return FieldColor().mode(FieldColorModeId.THRESHOLDS)


def fixed(colour: str) -> FieldColor:
    """One colour for the whole panel."""
    return FieldColor().mode(FieldColorModeId.FIXED).fixed_color(colour)


def in_colour(colour: str) -> DynamicConfigValue:
    """One colour for the lines of an override."""
    return DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
