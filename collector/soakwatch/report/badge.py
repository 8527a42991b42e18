"""The badge of a run: an SVG with its name, verdict and length, for a README, a wiki, or the front page of a build."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from importlib import resources

from soakwatch.core.formatting import SYMBOLS, printable
from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch_model.finding import Outcome

_MAX_NAME = 40
_PAD = 6
_COLOURS = {Outcome.PASS: "#00694d", Outcome.FAIL: "#a83800", Outcome.INCONCLUSIVE: "#8a3a75"}
"""Those of the report; white text on each has a contrast above 4.5."""
_GREY = "#525a63"  # of a run that goes on and has not failed
_NARROW, _WIDE = frozenset("iIlj.,:;'|!()[]/ tfr-·"), frozenset("mwMW@%✓✗—")


@dataclass(frozen=True, slots=True)
class Badge:
    """The two halves of a badge, what they say, and their widths in pixels."""

    name: str
    said: str
    colour: str
    name_width: int
    said_width: int
    pad: int = _PAD

    @property
    def width(self) -> int:
        """Of both halves."""
        return self.name_width + self.said_width

    @property
    def words(self) -> str:
        """The same without a picture."""
        return f"{self.name}: {self.said}"


def badge_of(verdict: Verdict) -> Badge:
    """Name, verdict and length of a run."""
    return badge(verdict.run, verdict.outcome, show_seconds(verdict.window.seconds), goes_on=verdict.preliminary)


def badge(name: str, outcome: Outcome, size: str, *, goes_on: bool) -> Badge:
    """A name, a verdict and how long or how large it is; what goes on is told as such, in grey unless it fails."""
    name = " ".join(printable(name).split()) or "run"
    name = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
    failed = outcome is Outcome.FAIL
    said = f"{SYMBOLS[outcome]} {outcome.value}"
    if goes_on:
        said = "fails so far" if failed else "no failure so far"
    said = f"{said} · {size}"
    colour = _GREY if goes_on and not failed else _COLOURS[outcome]
    return Badge(name, said, colour, _width(name), _width(said))


def render_badge(badge: Badge) -> str:
    """The badge as SVG. Nothing is fetched, and no service draws it."""
    from jinja2 import Environment, StrictUndefined

    template = resources.files(__package__).joinpath("badge.svg.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(template).render(badge=badge) + "\n"


def _width(text: str) -> int:
    """About as wide as Verdana of 11 px, with its padding; ``textLength`` makes every other font fit."""
    return round(sum(map(_char_width, text))) + 2 * _PAD


def _char_width(char: str) -> float:
    if char in _NARROW:
        return 4.6
    if char in _WIDE or unicodedata.east_asian_width(char) in "WF":
        return 10.7
    return 7.9 if char.isupper() else 6.7
