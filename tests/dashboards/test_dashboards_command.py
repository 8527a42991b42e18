"""``soakwatch dashboards`` and deploy/: a Grafana finds dashboards and database, and no secret is written."""

from __future__ import annotations

import json
import re
import shutil
from itertools import chain
from pathlib import Path
from typing import TypedDict

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from soakwatch_dashboards.__main__ import IN_COMPOSE
from tests.dashboards.grafana_types import VERSIONS as TYPES

from soakwatch.cli.main import run
from soakwatch.transfer.sinks.grafana import SOURCE_UID, dashboards, dashboards_for, provisioning
from soakwatch.transfer.sinks.grafana.versions import LEAST, VERSIONS
from soakwatch.web.routes.page import ENDPOINTS

DEPLOY = Path(__file__).parents[2] / "deploy"
PAGE = "http://soak.lab:8080"


class Service(TypedDict, total=False):
    """As much of a compose service as is looked at."""

    image: str
    build: dict[str, str]
    environment: dict[str, str]
    healthcheck: dict[str, object]
    ports: list[str]
    secrets: list[str]
    volumes: list[str]
    logging: dict[str, dict[str, str]]


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
    assert {file.name: file.read_text() for file in (out / "dashboards").iterdir()} == dashboards_for(LEAST)
    assert {folder.name for folder in (out / "provisioning").iterdir()} == {
        "alerting",
        "dashboards",
        "datasources",
        "notifiers",
        "plugins",
    }  # all that a Grafana looks for
    (source,) = yaml.safe_load((out / "provisioning/datasources/soakwatch.yaml").read_text())["datasources"]
    assert (source["uid"], source["url"], source["jsonData"]["dbName"]) == (SOURCE_UID, "http://db:8086", "b")
    assert source["secureJsonData"] == {"httpHeaderValue1": "Token $__file{/t}"}
    (provider,) = yaml.safe_load((out / "provisioning/dashboards/soakwatch.yaml").read_text())["providers"]
    assert Path(provider["options"]["path"]) == (out / "dashboards").resolve()


@pytest.mark.parametrize("version", VERSIONS)
def test_dashboards_are_written_for_a_version(version: str, tmp_path: Path) -> None:
    """With the number of its schema; the least is the default, which a later one brings up to its own."""
    assert run(["dashboards", "--out", str(tmp_path), "--grafana", version]) == 0
    texts = {file.name: file.read_text() for file in (tmp_path / "dashboards").iterdir()}
    assert texts == dashboards_for(version)
    assert {json.loads(text)["schemaVersion"] for text in texts.values()} == {VERSIONS[version].schema}
    schemas = [known.schema for known in VERSIONS.values()]
    assert schemas == sorted(schemas)
    assert next(iter(VERSIONS)) == LEAST
    assert list(TYPES) == list(VERSIONS)  # each is checked against types of its own


def test_the_report_of_a_run_is_linked_where_a_page_is_named(tmp_path: Path) -> None:
    """At the head of the dashboards of one run, in a tab of its own, and at the name of each run in Fleet."""
    assert run(["dashboards", "--out", str(tmp_path), "--page", f"{PAGE}/"]) == 0
    linked = {}
    for file in (tmp_path / "dashboards").iterdir():
        board = json.loads(file.read_text())
        linked[board["uid"]] = [link for link in board["links"] if PAGE in link["url"]]
    assert {uid for uid, links in linked.items() if links} == {"soakwatch-run", "soakwatch-device", "soakwatch-monitor"}
    for link in chain.from_iterable(linked.values()):
        assert link["url"] == f"{PAGE}/runs/${{run:percentencode}}/"
        assert (link["title"], link["targetBlank"], link["includeVars"]) == ("Report", True, False)
    fleet = (tmp_path / "dashboards" / "soakwatch-fleet.json").read_text()
    (runs,) = [panel for panel in json.loads(fleet)["panels"] if panel["title"] == "Runs"]
    links = [
        link
        for override in runs["fieldConfig"]["overrides"]
        for item in override["properties"]
        if item["id"] == "links"
        for link in item["value"]
    ]
    assert [link["url"] for link in links if PAGE in link["url"]] == [
        f"{PAGE}/runs/${{__data.fields.run:percentencode}}/"
    ]
    assert len(links) > 1  # those that there were
    assert fleet.count(PAGE) == 1
    assert all("/runs/" not in text for text in dashboards_for(LEAST).values())


def test_the_linked_page_is_one_that_the_server_has() -> None:
    """The address that the links name is served: the page of a run."""
    assert "/runs/{run}/" in {endpoint.path for endpoint in ENDPOINTS}


@pytest.mark.parametrize(
    "page", ["soak.lab:8080", "ftp://soak.lab", "http://", "http://soak.lab/?token=1", "javascript:x"]
)
def test_a_page_that_is_no_url_is_one_sentence(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing is written."""
    assert run(["dashboards", "--out", str(tmp_path / "out"), "--page", page]) == 2
    message = capsys.readouterr().err
    assert "--page" in message
    assert "Traceback" not in message
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_replaced_silently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What somebody has changed stays, and nothing else is written, until it is asked for; his own is never touched."""
    own, ours = tmp_path / "dashboards" / "own.json", tmp_path / "dashboards" / "soakwatch-run.json"
    own.parent.mkdir()
    own.write_text("{}")
    ours.write_text("{}")
    assert run(["dashboards", "--out", str(tmp_path)]) == 2
    errors = capsys.readouterr().err
    assert str(ours) in errors
    assert "--force" in errors
    assert "Traceback" not in errors
    assert {file.read_text() for file in tmp_path.rglob("*.*")} == {"{}"}
    assert run(["dashboards", "--out", str(tmp_path), "--force"]) == 0
    assert own.read_text() == "{}"
    assert json.loads(ours.read_text())["uid"] == "soakwatch-run"
    assert run(["dashboards", "--out", str(tmp_path)]) == 0  # the same again is no change


def test_what_to_do_next_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four steps, beside the list of files: how Grafana finds them, the token, what to open, who is alarmed."""
    assert run(["dashboards", "--out", str(tmp_path), "--token-file", "/run/secrets/t"]) == 0
    errors = capsys.readouterr().err
    assert [line[:2] for line in errors.splitlines()[1:]] == ["1.", "2.", "3.", "4."]
    for word in (
        "/etc/grafana/provisioning",
        SOURCE_UID,
        "/run/secrets/t",
        "Soakwatch · Fleet",
        "?kiosk",
        "150 %",
        "contact point",
    ):
        assert word in errors


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """One to copy, what an upgrade needs, and the least version."""
    assert run(["dashboards", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "soakwatch dashboards --out grafana --force" in shown
    assert "--grafana 12 --page http" in shown
    assert "least version is Grafana 10.4" in shown


def wheel_files(checkout: Path) -> dict[str, Path]:
    """What a wheel of it would hold, and from where; the wheel itself is built in ``tests/test_house.py``."""
    builder = WheelBuilder(str(checkout))
    assert builder.metadata.core.readme
    return {str(file.distribution_path): Path(file.path) for file in builder.recurse_included_files()}


def test_the_wheel_has_the_dashboards() -> None:
    """All five, as they are committed: an installation without the checkout writes the same."""
    folder = "soakwatch/transfer/sinks/grafana/dashboards/"
    packed = {
        Path(name).name: file.read_text()
        for name, file in wheel_files(DEPLOY.parent).items()
        if name.startswith(folder)
    }
    assert packed == dashboards()


def test_dashboards_into_a_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and the path is named."""
    file = tmp_path / "file"
    file.write_text("")
    assert run(["dashboards", "--out", str(file)]) == 2
    assert run(["dashboards", "--out", str(file / "below")]) == 4
    errors = capsys.readouterr().err
    assert "file" in errors
    assert "Traceback" not in errors
    assert len(errors.splitlines()) == 2


def test_the_provisioning_of_deploy_is_what_the_command_writes() -> None:
    """With the addresses of the compose file."""
    for name, text in provisioning(IN_COMPOSE).items():
        assert (DEPLOY / "grafana" / "provisioning" / name).read_text() == text  # python -m soakwatch_dashboards
    folders = {folder.name for folder in (DEPLOY / "grafana" / "provisioning").iterdir()}
    assert folders == {"alerting", "dashboards", "datasources", "notifiers", "plugins"}


def test_compose_pins_checks_and_keeps_secrets_in_files() -> None:
    """Every image has a version, every service a health check; no password stands in it; ports are on loopback."""
    text = (DEPLOY / "compose.yaml").read_text()
    compose: Compose = yaml.safe_load(text)
    assert set(compose["services"]) == {"influxdb", "grafana", "collector"}
    assert compose["services"]["influxdb"]["image"].startswith("influxdb:2.7")
    for name, service in compose["services"].items():
        assert service["healthcheck"]["test"], name
        assert service["logging"]["options"], name  # 72 hours of logs have an end
        assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+", service["image"]), name
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
    files = {secret["file"].removeprefix("./") for secret in compose["secrets"].values()}
    ignored = (DEPLOY / ".gitignore").read_text().split()
    assert all(f"/{file.split('/')[0]}/" in ignored for file in files)  # none is ever committed
    page = (DEPLOY / "grafana.md").read_text()
    assert all(Path(file).name in page for file in files)  # and each is made by the page's commands
    assert not re.search(r"(?i)(password|token|secret)\w*: *[\"']?(?!/run/secrets/|\[|\{file: |\n)\S", text)
    mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert IN_COMPOSE.folder in mounted
    assert "/etc/grafana/provisioning" in mounted


def test_the_image_is_built_from_all_that_a_wheel_needs(tmp_path: Path) -> None:
    """What the Dockerfile copies is enough: from it alone the same wheel is built as from the checkout."""
    text = (DEPLOY / "Dockerfile").read_text()
    source = tmp_path / "source"
    source.mkdir()
    for copied in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        *names, _ = copied.split()
        for name in names:
            part = DEPLOY.parent / name
            if part.is_dir():
                shutil.copytree(part, source / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(part, source)
    packed = [sorted(wheel_files(folder)) for folder in (source, DEPLOY.parent)]
    assert packed[0] == packed[1]
    assert re.search(r"^FROM python:3\.\d+-slim-\w+$", text, re.MULTILINE)
    assert re.search(r"^USER (?!root)\w+$", text, re.MULTILINE)
