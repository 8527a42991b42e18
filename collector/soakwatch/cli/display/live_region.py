"""A picture at the bottom of a terminal, redrawn in place without clearing it first, so that it does not flicker. What
others print meanwhile appears above it and stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol, TextIO, cast

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.segment import ControlType, Segment
from rich.text import Text

# synchronized output: terminals that support it show everything in between at once
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"


class Picture(Protocol):
    """Something that can be drawn within a width and height, in character cells."""

    def lines(self, width: int, height: int) -> Sequence[Text]:
        """At most ``height`` lines, each at most ``width`` wide."""
        ...


class Frame(RenderHook):
    """The picture on a console; ``draw`` replaces it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._picture: Picture | None = None
        self._widths: list[int] = []  # of the lines shown now

    def draw(self, picture: Picture) -> None:
        """Show this picture. Raises OSError if the terminal is gone."""
        self._picture = picture
        self._console.print(Control())

    def clear(self) -> None:
        """Remove the picture."""
        self._picture = None
        self._console.print(Control())

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """The printed message, then the picture below it."""
        message = any(not isinstance(renderable, Control) for renderable in renderables)
        return [_Raw(_BEGIN), self._back(wiped=message), *renderables, _Drawn(self, self._picture), _Raw(_END)]

    def _back(self, *, wiped: bool) -> ConsoleRenderable:
        """Move the cursor to the start of the picture; a terminal that became narrower has rewrapped its lines."""
        width = max(self._console.width, 1)
        rows = sum(max(1, -(-drawn_width // width)) for drawn_width in self._widths)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        narrower = any(drawn_width > width for drawn_width in self._widths)
        return _Raw("\r" + up + ("\x1b[J" if wiped or narrower else ""))

    def drawn(self, options: ConsoleOptions, picture: Picture | None) -> Iterator[Segment]:
        """The segments of a picture; each line clears only what is behind its text, the last one everything below."""
        console = self._console
        lines = [] if picture is None else picture.lines(max(options.max_width - 1, 1), max(console.height - 1, 1))
        self._widths = [line.cell_len for line in lines]
        for index, line in enumerate(lines):
            if index:
                yield Segment.line()
            yield from console.render_lines(line, options.update(no_wrap=True), pad=False)[0]
            yield _code("\x1b[K")
        yield _code("\x1b[J")


class _Raw:
    """A terminal code that has no width."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _code(self._code)


class _Drawn:
    def __init__(self, frame: Frame, picture: Picture | None) -> None:
        self._frame, self._picture = frame, picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._frame.drawn(options, self._picture)


@contextmanager
def framed(console: Console) -> Iterator[Frame]:
    """Yield a frame on a terminal; at the end it is removed, and what was printed stays.

    Standard error is shown above it meanwhile. Nothing is raised if the terminal disappears.
    """
    frame = Frame(console)
    stderr = sys.stderr
    shared = stderr is not None and stderr.isatty()
    console.push_render_hook(frame)
    if shared:
        sys.stderr = cast("TextIO", FileProxy(console, stderr))
    try:
        with suppress(OSError):
            console.show_cursor(show=False)
        yield frame
    finally:
        sys.stderr = stderr
        with suppress(OSError):
            frame.clear()
            console.show_cursor(show=True)
        console.pop_render_hook()


def drawable(console: Console) -> bool:
    """Whether the console is a terminal that can redraw in place."""
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty()


def _code(text: str) -> Segment:
    return Segment(text, None, [(ControlType.ERASE_IN_LINE, 0)])
