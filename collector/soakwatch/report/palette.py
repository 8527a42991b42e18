"""The colours of the plots, for a light page and for a dark one; distinguishable with every common colour blindness.

Nothing is told by colour alone: lines have numbers, findings a shape and a number, phases their names, gaps are
hatched. ``theme.js`` holds the same table as ``DARK`` and picks from it when a plot is painted.
"""

from __future__ import annotations

from soakwatch_model.finding import Outcome

# Okabe and Ito's palette, for a light ground
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#f0e442",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
LINES = (BLUE, VERMILION, GREEN, BLACK, PURPLE, ORANGE, SKY)
DASHES = 3  # solid, dashed, dotted
GROUND, GRID, OUTLINE, AXIS, TEXT, GREY, NAME = (
    "#ffffff",
    "#e6e6e6",
    "#cccccc",
    "#999999",
    "#444444",
    "#767676",
    "#333333",
)
HALO = "#fefefe"
"""Around what is drawn over a heat map; not the ground's colour, so that a dark page can tell the two apart."""

DARK = {
    BLACK: "#eef1f4",
    ORANGE: "#f5c04a",
    SKY: "#a5dcfa",
    GREEN: "#2cc094",
    YELLOW: "#f0e442",
    BLUE: "#4c9fe6",
    VERMILION: "#f2793a",
    PURPLE: "#e3a3c8",
    GROUND: "#1d2126",
    GRID: "#343a41",
    OUTLINE: "#4a525a",
    AXIS: "#8b949d",
    TEXT: "#c6ccd2",
    GREY: "#9aa3ab",
    NAME: "#cdd3d9",
    HALO: "#101214",
}
"""What each colour of a light page becomes on a dark one."""

PHASES = {  # the soak itself is not shaded
    "baseline": SKY,
    "ramp": YELLOW,
    "stress": ORANGE,
    "spike": VERMILION,
    "recovery": GREEN,
    "cooldown": PURPLE,
    "capacity": BLUE,
}
OUTCOMES = {
    Outcome.FAIL: (VERMILION, "square_x"),
    Outcome.INCONCLUSIVE: (PURPLE, "diamond"),
    Outcome.WARN: (ORANGE, "triangle"),
    Outcome.PASS: (GREEN, "circle"),
    Outcome.NOT_APPLICABLE: (GREY, "dash"),
}
"""Colour and shape of a finding's mark in a plot."""
