"""Writes the dashboards' JSON: ``python -m soakwatch_dashboards [FOLDER]``.

Without FOLDER it is written to the collector's package, together with the provisioning in ``deploy/``, whose alert
rules refer to panels by number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from soakwatch.transfer.sinks import grafana
from soakwatch.transfer.sinks.grafana import EMPTY_FOLDERS, Grafana, provisioning
from soakwatch_dashboards import compare, device, fleet, monitor, run
from soakwatch_dashboards.board import Board, to_json

HOME = Path(grafana.__file__).parent / "dashboards"
DEPLOY = Path(__file__).parents[2] / "deploy" / "grafana" / "provisioning"
IN_COMPOSE = Grafana("http://influxdb:8086", "soak", "$__file{/run/secrets/influxdb_token}", "/etc/grafana/soakwatch")
"""Addresses as the containers of ``deploy/compose.yaml`` see them."""


def boards() -> tuple[Board, ...]:
    """All dashboards."""
    return run.board(), device.board(), compare.board(), fleet.board(), monitor.board()


def texts() -> Iterator[tuple[str, str]]:
    """Name and content of each file."""
    for board in boards():
        yield board.file, to_json(board)


def main(folder: Path) -> None:
    """Write every file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts():
        (folder / name).write_text(text, encoding="utf-8")


def write_deploy() -> None:
    """Write the provisioning for the containers; an otherwise empty folder gets a file, so that git keeps it."""
    texts = {**provisioning(IN_COMPOSE), **{f"{name}/.gitkeep": "" for name in EMPTY_FOLDERS}}
    for name, text in texts.items():
        file = DEPLOY / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        main(HOME)
        write_deploy()
