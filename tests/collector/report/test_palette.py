"""The colours of the plots can be told apart, on a light page, on a dark one, and by the colour-blind."""

from __future__ import annotations

import itertools
import json
import re
from importlib import resources

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.report import palette
from soakwatch.report.palette import DARK, GROUND, LINES, NAME, OUTCOMES, TEXT

# how people without one sort of cone see linear light (Viénot, Brettel and Mollon 1999; Machado et al. 2009 for blue)
BLIND: dict[str, NDArray[np.float64]] = {
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
    "nobody": np.eye(3),
}


def lab(colour: str, sight: NDArray[np.float64]) -> NDArray[np.float64]:
    """A colour in CIE L*a*b* as seen by someone."""
    parts = np.array([int(colour[digit : digit + 2], 16) / 255 for digit in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(sight @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = (to_xyz @ seen) / np.array([0.9505, 1.0, 1.089])
    root = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(colour: str, other: str) -> float:
    """The contrast of two colours (#rrggbb) as WCAG 2 defines it, 1 to 21.

    >>> round(contrast("#000000", "#ffffff"), 1), contrast("#123456", "#123456")
    (21.0, 1.0)
    """
    low, high = sorted((_luminance(colour), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("ground", ["#111111", DARK[GROUND]])
def test_lines_stand_out_on_a_dark_page(ground: str) -> None:
    """Each line, mark and outcome has a contrast of at least 3:1 to the darkest ground and to the plots' own."""
    for colour in (*LINES, palette.GREY, palette.YELLOW, *(colour for colour, _ in OUTCOMES.values())):
        assert contrast(DARK[colour], ground) >= 3.0, colour


@pytest.mark.parametrize("colour", [TEXT, NAME, palette.BLACK])
def test_words_can_be_read_on_both_pages(colour: str) -> None:
    """Text has a contrast of at least 4.5:1, light and dark."""
    assert contrast(colour, GROUND) >= 4.5
    assert contrast(DARK[colour], DARK[GROUND]) >= 4.5


@pytest.mark.parametrize("sight", BLIND)
@pytest.mark.parametrize("dark", [False, True])
def test_neighbouring_lines_differ_for_everybody(sight: str, dark: bool) -> None:
    """Any two of the seven line colours lie apart by more than is just noticeable, also without red or green cones."""
    colours = [DARK[colour] if dark else colour for colour in LINES]
    for first, other in itertools.combinations(colours, 2):
        apart = float(np.linalg.norm(lab(first, BLIND[sight]) - lab(other, BLIND[sight])))
        assert apart > 8.0, (sight, first, other, apart)


def test_no_outcome_is_shown_by_colour_alone() -> None:
    """Every outcome has a shape of its own in the plots."""
    shapes = [shape for _, shape in OUTCOMES.values()]
    assert len(set(shapes)) == len(shapes)


def test_the_script_holds_the_same_colours() -> None:
    """``theme.js`` changes exactly the colours of the palette into their dark counterparts."""
    script = resources.files("soakwatch.report").joinpath("theme.js").read_text(encoding="utf-8")
    table = re.search(r"const DARK = (\{.*?\});", script, re.DOTALL)
    assert table is not None
    assert json.loads(table[1]) == DARK


def test_the_scripts_put_no_data_into_markup() -> None:
    """Neither script writes markup or evaluates text."""
    for name in ("theme.js", "figure.js", "plots.js"):
        script = resources.files("soakwatch.report").joinpath(name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script)
        assert "</script" not in script.lower()
