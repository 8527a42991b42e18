"""One tab of a real browser: it reaches nothing beyond loopback, and whatever goes wrong in it is written down."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Route
from tests.commands import MAX_WAIT_S

BEYOND = re.compile(
    r"^(?!(?:file|data|blob|about|chrome|devtools):|(?:https?|wss?)://(?:127\.[\d.]+|localhost|\[::1\])(?::\d+)?(?:/|$))"
)
"""An address that is neither on this machine nor inside the page."""
SERIOUS = frozenset({"serious", "critical"})
Scheme = Literal["light", "dark"]
Key = tuple[str, str, str]
_OURS = "willReadFrequently"
"""What the browser logs because the tests read pixels."""
_PROBE = Path(__file__).with_name("probe.js")
_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


class _Model(TypedDict):
    """A data source that is drawn, as ``probe.js`` tells of it."""

    element: str
    name: str
    glyph: str
    visible: bool
    factor: float
    rate: bool
    unit: str
    time: list[float]
    value: list[float]
    rows: list[str]
    image: list[list[float]]
    begin: float
    span: float


class _FigureModel(TypedDict):
    """A figure, as ``probe.js`` tells of it."""

    element: str
    axis: str
    start: float
    end: float
    ground: str
    border: str
    lines: list[str]
    labels: str


class Line(NamedTuple):
    """What one line of a plot holds: ``time`` in ms since 1970, ``value`` as shown (NaN where it breaks)."""

    element: str
    key: Key
    glyph: str
    visible: bool
    factor: float
    rate: bool
    unit: str
    time: NDArray[np.float64]
    value: NDArray[np.float64]


class HeatMap(NamedTuple):
    """What one heat map holds: a row of cells (NaN without a reading) for each name; begin and width in ms."""

    element: str
    target: str
    metric: str
    names: tuple[str, ...]
    cells: NDArray[np.float64]
    begin: float
    span: float


class Figure(NamedTuple):
    """How one plot looks: its time axis (ms since 1970) and colours."""

    element: str
    axis: str
    start: float
    end: float
    ground: str
    border: str
    lines: tuple[str, ...]
    labels: str


@dataclass
class Tab:
    """A page of its own browser context: its test fails for ``complaints`` that are not ``forgiven``."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def forgive(self, pattern: str) -> None:
        """Expect complaints that hold this regular expression."""
        self.forgiven.append(pattern)

    def unforgiven(self) -> list[str]:
        """What went wrong and was not expected."""
        return [
            complaint
            for complaint in self.complaints
            if not any(re.search(pattern, complaint) for pattern in self.forgiven)
        ]

    def check(self) -> None:
        """Raises AssertionError for what went wrong and was not expected; then nothing is expected any more."""
        assert self.unforgiven() == []
        self.complaints.clear()
        self.forgiven.clear()

    def open(self, file: Path) -> None:
        """Open a file from disk and wait for its load event."""
        self.page.goto(file.as_uri(), wait_until="load")

    def unfold(self) -> None:
        """Open everything that is folded away."""
        self.page.evaluate("() => { for (const fold of document.querySelectorAll('details')) fold.open = true; }")

    def draw_all(self) -> None:
        """Draw every plot of the page, those too that nobody scrolled to."""
        self.page.evaluate("async () => { if (typeof soakwatchPlots !== 'undefined') await soakwatchPlots.drawAll(); }")
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.plot')].every((one) => one.querySelector('.uplot') !== null)"
        )

    def lines(self) -> list[Line]:
        """Every drawn line of a series, read from the models of the page."""
        return [
            Line(
                model["element"],
                _key(model["name"]),
                model["glyph"],
                model["visible"],
                float(model["factor"]),
                model["rate"],
                model["unit"],
                np.array(model["time"], float),
                np.array(model["value"], float),
            )
            for model in self._models()
            if model["name"].startswith("series:")
        ]

    def heat_maps(self) -> list[HeatMap]:
        """Every heat map, read from the models of the page."""
        maps = []
        for model in self._models():
            if model["name"].startswith("heat:"):
                target, metric, *_ = json.loads(model["name"].removeprefix("heat:"))
                cells = np.array(model["image"], float)
                maps.append(
                    HeatMap(
                        model["element"], target, metric, tuple(model["rows"]), cells, model["begin"], model["span"]
                    )
                )
        return maps

    def figures(self) -> list[Figure]:
        """How every plot looks now."""
        figures_drawn: list[_FigureModel] = self.page.evaluate("() => soakwatchProbe.figures()")
        return [
            Figure(
                figure["element"],
                figure["axis"],
                figure["start"],
                figure["end"],
                figure["ground"],
                figure["border"],
                tuple(figure["lines"]),
                figure["labels"],
            )
            for figure in figures_drawn
        ]

    def colours(self, element: str) -> list[str]:
        """The colours of a plot's pixels as ``rgb(r, g, b)``, the most frequent first."""
        colours: list[str] = self.page.locator(f"#{element}").evaluate("(plot) => soakwatchProbe.colours(plot)")
        return colours

    def style(self, selector: str, name: str) -> str:
        """A computed style of the first element that fits."""
        text: object = self.page.locator(selector).first.evaluate("(e, name) => getComputedStyle(e)[name]", name)
        return str(text)

    def count(self, selector: str) -> int:
        """How many elements fit."""
        return self.page.locator(selector).count()

    def barriers(self) -> list[str]:
        """What axe-core finds that is serious or worse, one line each: rule, how often, where at first."""
        self.page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
        violations: list[Mapping[str, object]] = self.page.evaluate(_AXE)
        return [_barrier(violation) for violation in violations if violation["impact"] in SERIOUS]

    def tour(self) -> list[str]:
        """Press Tab from the first control on until no new one comes, and tell what was wrong on the way: controls that
        do not show the focus, stand in another order than on the page, or were not reached."""
        expected = int(self.page.evaluate("() => soakwatchProbe.stops().length"))
        visited = self.page.evaluate_handle(
            "() => { const [first] = soakwatchProbe.stops(); first.focus(); return [first]; }"
        )
        wrong: list[str] = []
        for _ in range(3 * expected):
            self.page.keyboard.press("Tab")
            went_on, seen = visited.evaluate("(visited) => soakwatchProbe.visit(visited)")
            if not went_on:
                break
            if not seen:
                wrong.append(f"not seen: {self.focused()}")
        else:
            wrong.append(f"Tab went on behind the last of {expected} controls, at {self.focused()}")
        disorder: list[str] | None = visited.evaluate("(visited) => soakwatchProbe.disorder(visited)")
        if disorder is not None:
            wrong.append(f"{disorder[0]} came before {disorder[1]}")
        missed: list[str] = visited.evaluate(
            "(visited) => soakwatchProbe.stops().filter((one) => !visited.includes(one)).map((one) => one.outerHTML)"
        )
        return wrong + [f"not reached: {target[:120]}" for target in missed]

    def too_wide(self) -> list[str]:
        """What makes the page scroll sideways, the first few."""
        elements: list[str] = self.page.evaluate("() => soakwatchProbe.tooWide()")
        return elements

    def focused(self) -> str:
        """The element with the focus, by its tag, id and first words."""
        text: object = self.page.evaluate(
            "() => { const e = document.activeElement; return `${e.tagName.toLowerCase()}#${e.id} "
            "${(e.getAttribute('aria-label') ?? e.textContent).trim().slice(0, 60)}`; }"
        )
        return str(text)

    def _models(self) -> list[_Model]:
        models: list[_Model] = self.page.evaluate("() => soakwatchProbe.models()")
        return models


def open_tab(browser: Browser, *, offline: bool = False, scheme: Scheme = "light", width: int = 1280) -> Tab:
    """A tab in a context of its own; close ``tab.page.context`` when done."""
    context: BrowserContext = browser.new_context(
        offline=offline,
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        reduced_motion="reduce",
        service_workers="block",
    )
    context.set_default_timeout(MAX_WAIT_S * 1000)
    context.add_init_script(path=_PROBE)
    tab = Tab(context.new_page())

    def beyond(route: Route) -> None:
        tab.complaints.append(f"asked for {route.request.url[:200]}")
        route.abort()

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"} and _OURS not in message.text:
            tab.complaints.append(f"{message.type}: {message.text[:500]} ({message.location.get('url', '')[:120]})")

    def asked(dialog: Dialog) -> None:
        tab.complaints.append(f"dialog {dialog.type}: {dialog.message[:200]}")
        dialog.dismiss()

    context.route(BEYOND, beyond)
    tab.page.on("console", note)
    tab.page.on("pageerror", lambda error: tab.complaints.append(f"script: {error.message[:500]}"))
    tab.page.on("crash", lambda _: tab.complaints.append("the tab crashed"))
    tab.page.on("dialog", asked)
    return tab


def _key(name: str) -> Key:
    target, metric, obj = json.loads(name.removeprefix("series:"))
    return str(target), str(metric), str(obj)


def _barrier(violation: Mapping[str, object]) -> str:
    nodes = cast("Sequence[Mapping[str, object]]", violation["nodes"])
    where = f"{nodes[0]['target']}: {str(nodes[0]['html'])[:160]} ({str(nodes[0].get('failureSummary'))[:200]})"
    return f"{violation['impact']} {violation['id']}, {len(nodes)} times, first at {where}"


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2) of ``#rrggbb`` or ``rgb(r, g, b)``, 0 to 1."""
    if colour.startswith("#"):
        parts = [int(colour[digit : digit + 2], 16) for digit in (1, 3, 5)]
    else:
        parts = [int(float(part)) for part in re.findall(r"[\d.]+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in parts)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2), 1 to 21."""
    darker, lighter = sorted((luminance(first), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
