"""The runs that were judged worst, drawn: what was done to which series and when, and what the verdict said."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from tests.bench.accuracy.night import Floats, Key, Mask, Night, floats
from tests.bench.accuracy.tables import HIGH, WIDE, svg
from tests.bench.accuracy.truth import Truth

from soakwatch_model.metric import BY_NAME, COUNTER

_PANELS, _HEAD, _LETTERS = 3, 64, 125


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """A night as it was before something was done to it."""

    value: dict[Key, Floats]
    answered: dict[str, Mask]

    @classmethod
    def of(cls, night: Night) -> Before:
        """A copy of its readings."""
        return cls(
            {key: value.copy() for key, value in night.value.items()},
            {name: answered.copy() for name, answered in night.answered.items()},
        )


def _read(night: Night, key: Key) -> Floats:
    """What the polls brought: readings, a counter's pace in place of its count."""
    value = np.where(night.answered[night.source_of(key).name], night.value[key], np.nan)
    if BY_NAME[key.metric].kind == COUNTER:
        return floats(np.diff(value, prepend=np.nan) / night.cadence_s)
    return floats(value)


def _touched(before: Before, night: Night) -> dict[Key, int]:
    """The series that a fault changed, each with the first poll that tells."""
    found: dict[Key, int] = {}
    for key, value in night.value.items():
        was = before.value.get(key)
        source = night.source_of(key).name
        unlike = night.answered[source] != before.answered.get(source, night.answered[source])
        if was is None:
            unlike = np.ones(value.size, np.bool_)
        else:
            unlike = unlike | ~((was == value) | (np.isnan(was) & np.isnan(value)))
        if unlike.any():
            found[key] = int(np.argmax(unlike))
    return found


def picture(
    night: Night, before: Before, truth: Truth | None, accused: list[tuple[str, str]], title: str, note: str
) -> str:
    """Up to three series as one SVG: those that the fault changed, named ones first, or those that a finding accuses
    (metric and object); a red line where the fault begins."""
    touched = _touched(before, night) if truth is not None else {}

    def rank(key: Key) -> tuple[bool, bool, str]:
        named = truth is not None and any(truth.named_by(rule, key.metric, key.object) for rule in truth.rules)
        return not named, (key.metric, key.object) not in accused, str(key)

    keys = sorted(touched, key=rank) or [key for key in night.value if (key.metric, key.object) in accused]
    keys = keys or [key for key in night.value if key.metric in {"system.memory.usage", "load.rx.packets"}]
    begin_s = [float(night.at_s[min(touched.values())])] if touched else []
    panels, lines = [], [title, *textwrap.wrap(note, _LETTERS)[:3]]
    for number, key in enumerate(keys[:_PANELS]):
        entry = BY_NAME[key.metric]
        unit = f"{entry.unit}/s" if entry.kind == COUNTER else entry.unit
        about, origin = f"{key.metric} {key.object}"[:_LETTERS], night.life.get(key, "")[:_LETTERS]
        drawn = svg(about, origin, night.at_s, _read(night, key), unit, begin_s)
        panels.append(drawn.replace("<svg ", f'<svg y="{_HEAD + number * HIGH}" ', 1))
    high = _HEAD + max(1, len(panels)) * HIGH
    text = "".join(
        f'<text x="2" y="{14 * (number + 1)}" font-family="sans-serif" font-size="11">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{high}">'
        f'<rect width="{WIDE}" height="{high}" fill="#fff"/>{text}{"".join(panels)}</svg>\n'
    )


def written(folder: Path, pictures: list[tuple[str, str]]) -> None:
    """The pictures as files, the worst first, and a page that shows them all."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:02d}-{name}.svg" for number, (name, _) in enumerate(pictures, 1)]
    for name, (_, drawn) in zip(names, pictures, strict=True):
        (folder / name).write_text(drawn, encoding="utf-8")
    shown = "".join(f'<p>{name}<br><img src="{name}"></p>\n' for name in names)
    (folder / "index.html").write_text(f"<!doctype html><meta charset=utf-8>\n{shown}", encoding="utf-8")
