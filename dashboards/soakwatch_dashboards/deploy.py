"""The provisioning that ``deploy/compose.yaml`` mounts, which ``soakwatch dashboards`` would write for it."""

from __future__ import annotations

from pathlib import Path

from soakwatch.sinks.grafana import EMPTY_FOLDERS, Grafana, provisioning

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana" / "provisioning"
IN_COMPOSE = Grafana("http://influxdb:8086", "soak", "$__file{/run/secrets/influxdb_token}", "/etc/grafana/soakwatch")
"""Addresses as the containers see them."""


def write() -> None:
    """Writes the files; a folder that is to be empty has one that git can hold."""
    texts = {**provisioning(IN_COMPOSE), **{f"{name}/.gitkeep": "" for name in EMPTY_FOLDERS}}
    for name, text in texts.items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
