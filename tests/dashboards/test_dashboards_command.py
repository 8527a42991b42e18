"""``soakwatch dashboards`` and deploy/: a Grafana finds dashboards and database, and no secret is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import pytest
import yaml

from soakwatch.cli import run
from soakwatch.grafana import SOURCE_UID, Grafana, dashboards, provisioning

DEPLOY = Path(__file__).parents[2] / "deploy"
IN_COMPOSE = Grafana("http://influxdb:8086", "soak", "$__file{/run/secrets/influxdb_token}", "/etc/grafana/soakwatch")


class Service(TypedDict, total=False):
    """As much of a compose service as is looked at."""

    image: str
    build: dict[str, str]
    environment: dict[str, str]
    healthcheck: dict[str, object]
    ports: list[str]
    secrets: list[str]
    volumes: list[str]


class Compose(TypedDict):
    """As much of a compose file as is looked at."""

    services: dict[str, Service]
    secrets: dict[str, dict[str, str]]
    volumes: dict[str, object]


def test_dashboards_writes_what_a_grafana_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All five, the data source that they ask, and the folder where they lie."""
    out = tmp_path / "grafana"
    assert run(["dashboards", "--out", str(out), "--url", "http://db:8086", "--bucket", "b", "--token-file", "/t"]) == 0
    shown = capsys.readouterr().out.split()
    assert {Path(line) for line in shown} == {file for file in out.rglob("*") if file.is_file()}
    assert {file.name: file.read_text() for file in (out / "dashboards").iterdir()} == dashboards()
    (source,) = yaml.safe_load((out / "provisioning/datasources/soakwatch.yaml").read_text())["datasources"]
    assert (source["uid"], source["url"], source["jsonData"]["dbName"]) == (SOURCE_UID, "http://db:8086", "b")
    assert source["secureJsonData"] == {"httpHeaderValue1": "Token $__file{/t}"}
    (provider,) = yaml.safe_load((out / "provisioning/dashboards/soakwatch.yaml").read_text())["providers"]
    assert Path(provider["options"]["path"]) == (out / "dashboards").resolve()


def test_dashboards_again_replaces_and_leaves_others_alone(tmp_path: Path) -> None:
    """Somebody's own dashboard beside ours stays; ours is what this version has."""
    own, ours = tmp_path / "dashboards" / "own.json", tmp_path / "dashboards" / "soakwatch-run.json"
    own.parent.mkdir()
    own.write_text("{}")
    ours.write_text("{}")
    assert run(["dashboards", "--out", str(tmp_path)]) == 0
    assert own.read_text() == "{}"
    assert json.loads(ours.read_text())["uid"] == "soakwatch-run"


def test_dashboards_into_a_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and the path is named."""
    place = tmp_path / "file"
    place.write_text("")
    assert run(["dashboards", "--out", str(place)]) == 2
    assert run(["dashboards", "--out", str(place / "below")]) == 4
    told = capsys.readouterr().err
    assert "file" in told
    assert "Traceback" not in told
    assert len(told.splitlines()) == 2


def test_the_provisioning_of_deploy_is_what_the_command_writes() -> None:
    """With the addresses of the compose file."""
    for name, text in provisioning(IN_COMPOSE).items():
        assert (DEPLOY / "grafana" / "provisioning" / name).read_text() == text


def test_compose_pins_checks_and_keeps_secrets_in_files() -> None:
    """Every image has a version, every service a health check; no password stands in it; ports are on loopback."""
    text = (DEPLOY / "compose.yaml").read_text()
    compose: Compose = yaml.safe_load(text)
    assert set(compose["services"]) == {"influxdb", "grafana", "collector"}
    assert compose["services"]["influxdb"]["image"].startswith("influxdb:2.7")
    for name, service in compose["services"].items():
        assert service["healthcheck"]["test"], name
        assert service.get("build") or service["image"].count(":") == 1, name
        assert not service.get("image", "").endswith(":latest"), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert set(service.get("secrets", [])) <= set(compose["secrets"]), name
        for key, value in service.get("environment", {}).items():
            if "PASSWORD" in key or "TOKEN" in key:
                assert key.endswith("_FILE"), key
                assert value.startswith("/run/secrets/"), key
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert source == "./plans" or (DEPLOY / source).exists(), volume
            else:
                assert source in compose["volumes"], volume
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert IN_COMPOSE.folder in mounted
    assert "/etc/grafana/provisioning" in mounted
