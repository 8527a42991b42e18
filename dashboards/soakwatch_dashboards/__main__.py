"""Writes the dashboards' JSON: ``python -m soakwatch_dashboards [FOLDER]``; by default where the collector has it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from soakwatch_dashboards import compare, device, fleet, monitor, run
from soakwatch_dashboards.board import Board, to_json

HOME = Path(__file__).parents[2] / "collector" / "soakwatch" / "sinks" / "grafana" / "dashboards"


def boards() -> tuple[Board, ...]:
    """All dashboards, made anew."""
    return run.board(), device.board(), compare.board(), fleet.board(), monitor.board()


def texts() -> Iterator[tuple[str, str]]:
    """The name of each file and what it holds."""
    for board in boards():
        yield board.file, to_json(board)


def main(folder: Path) -> None:
    """Write every file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)
