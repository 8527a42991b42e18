"""Grafana: the dashboards as JSON next to this file, and the provisioning of dashboards, data source and alert rules.

The JSON is generated from ``dashboards/`` of the project and committed, so that every installation has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from soakwatch.core.errors import MonitorBrokenError, PlanError
from soakwatch.transfer.sinks.grafana.alerts import alert_file
from soakwatch.transfer.sinks.grafana.models import parsed, text_of
from soakwatch.transfer.sinks.grafana.report_link import checked_page, with_report_links
from soakwatch.transfer.sinks.grafana.versions import LEAST, for_version

SOURCE_UID = "soakwatch-influxql"
FOLDER, FOLDER_UID = "Soakwatch", "soakwatch"
ALERT_FOLDER = "Soakwatch alerts"
"""Not the dashboards' folder: a file of alert rules cannot name a folder's uid, and Grafana would create a second
folder of the same title before it reads the dashboards."""
WALL = "kiosk&_dash.hideTimePicker=true&_dash.hideVariables=true&_dash.hideLinks=true"
"""URL parameters for a wall screen: ``kiosk`` alone keeps variables, annotation switches and links, which take a
quarter of the screen at 150 %. Grafana before 12 knows only ``kiosk``."""
EMPTY_FOLDERS = ("plugins", "notifiers")
"""Empty provisioning folders: Grafana logs an error for each one that is missing."""


@dataclass(frozen=True, slots=True)
class Grafana:
    """What to provision a Grafana with: the database's address, bucket and token, and the dashboards' folder.

    ``token`` is not the token but what Grafana expands to it: ``$INFLUXDB_TOKEN`` or ``$__file{/path}``; so may be
    ``url``. ``folder`` is the dashboards' folder as Grafana sees it. ``version`` is one of ``versions.VERSIONS``;
    ``page`` is the address of ``soakwatch serve`` as browsers see it, None for no links to it.
    """

    url: str
    bucket: str
    token: str
    folder: str
    version: str = LEAST
    page: str | None = None


def dashboards() -> Mapping[str, str]:
    """The JSON of each dashboard by file name, as the SDK writes it.

    Raises MonitorBrokenError for a damaged installation.
    """
    home = resources.files("soakwatch.transfer.sinks.grafana") / "dashboards"
    try:
        texts = {file.name: file.read_text(encoding="utf-8") for file in home.iterdir() if file.name.endswith(".json")}
    except OSError as error:
        raise MonitorBrokenError(f"the dashboards are missing from this installation: {error.strerror}") from None
    if not texts:
        raise MonitorBrokenError("the dashboards are missing from this installation: install it again")
    return dict(sorted(texts.items()))


def dashboards_for(version: str = LEAST, page: str | None = None) -> Mapping[str, str]:
    """The dashboards for a version of Grafana, with links to the server at ``page``.

    Raises PlanError for an invalid URL, MonitorBrokenError as ``dashboards`` does, KeyError for a version that is not
    in ``versions.VERSIONS``.
    """
    models = {name: for_version(parsed(text), version) for name, text in dashboards().items()}
    if page is not None:
        models = {name: with_report_links(model, checked_page(page)) for name, model in models.items()}
    return {name: text_of(model) for name, model in models.items()}


def provisioning(grafana: Grafana) -> Mapping[str, str]:
    """The provisioning files that Grafana reads at start, by path below its provisioning folder.

    They query InfluxQL through the mapping that InfluxDB 2 makes for each bucket, with the token as a header. Raises
    PlanError if ``page`` is an invalid URL.
    """
    page = None if grafana.page is None else checked_page(grafana.page)
    alerts = alert_file(SOURCE_UID, ALERT_FOLDER, [parsed(text) for text in dashboards().values()], page)
    source = {
        "name": "Soakwatch",
        "uid": SOURCE_UID,
        "type": "influxdb",
        "access": "proxy",
        "url": grafana.url,
        "database": grafana.bucket,  # Grafana 9 reads it here, later ones in jsonData
        "editable": False,
        "jsonData": {
            "version": "InfluxQL",
            "dbName": grafana.bucket,
            "httpMode": "POST",
            "httpHeaderName1": "Authorization",
            "timeInterval": "1s",
        },
        "secureJsonData": {"httpHeaderValue1": f"Token {grafana.token}"},
    }
    provider = {
        "name": "soakwatch",
        "folder": FOLDER,
        "folderUid": FOLDER_UID,
        "type": "file",
        "disableDeletion": True,
        "allowUiUpdates": False,
        "updateIntervalSeconds": 30,
        "options": {"path": grafana.folder},
    }
    return {
        "datasources/soakwatch.yaml": _yaml({"apiVersion": 1, "datasources": [source]}),
        "dashboards/soakwatch.yaml": _yaml({"apiVersion": 1, "providers": [provider]}),
        "alerting/soakwatch.yaml": _yaml(alerts),
    }


def write_grafana(out: Path, grafana: Grafana, *, force: bool = False) -> tuple[Path, ...]:
    """Write ``out``/dashboards and ``out``/provisioning; returns all files, those that were already right too.

    Without ``force`` nothing is written if a file differs, since people edit what lies there. Raises PlanError that
    names such a file, or for an invalid ``page``, and OSError.
    """
    texts = {out / "dashboards" / name: text for name, text in dashboards_for(grafana.version, grafana.page).items()}
    texts |= {out / "provisioning" / name: text for name, text in provisioning(grafana).items()}
    others = [file for file, text in texts.items() if not force and _differs(file, text)]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise PlanError(
            f"{others[0]}{more} is there already and is another: name an empty folder, or add --force to replace"
        )
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for name in EMPTY_FOLDERS:
        (out / "provisioning" / name).mkdir(exist_ok=True)
    return tuple(texts)


def _differs(file: Path, text: str) -> bool:
    try:
        return file.read_bytes() != text.encode()
    except (FileNotFoundError, NotADirectoryError):
        return False


def _yaml(content: object) -> str:
    text: str = yaml.safe_dump(content, sort_keys=False)
    return f"# written by `soakwatch dashboards`\n{text}"
