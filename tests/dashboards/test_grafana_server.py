"""The dashboards in a real Grafana, where GRAFANA_URL (and GRAFANA_TOKEN, of an administrator) name one.

Everything goes into a folder, under uids and a data source of its own, and is deleted afterwards. Grafana must reach
this machine's loopback, where the database is. No package of a distribution or a language has a Grafana: without one
all of this is skipped, in CI too; what Grafana would be asked is asked of the database in ``test_dashboard_queries``.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import httpx
import pytest
from soakwatch_dashboards.reading import headings, panels, parse
from tests.dashboards.filling import BOARDS, RUNNING, RUNS, View, chosen, view_of
from tests.dashboards.test_alert_rules import RULES
from tests.needs import needs_chromium

from soakwatch.transfer.sinks.grafana import SOURCE_UID, WALL, dashboards_for
from soakwatch_testing.influxd import BUCKET, Influxd

pytestmark = pytest.mark.skipif(
    not os.environ.get("GRAFANA_URL"), reason="GRAFANA_URL names no Grafana, and no package brings one"
)
UIDS = sorted(board["uid"] for board in BOARDS)
TEXTS = dashboards_for()
"""As the command writes them for any Grafana from the least version on."""


@dataclass(frozen=True, slots=True)
class Grafana:
    """A Grafana with the dashboards in it; ``mark`` stands for ``soakwatch`` in their uids."""

    client: httpx.Client
    mark: str

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """A request whose answer must be good."""
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, (method, path, answer.status_code, answer.text[:500])
        return answer

    def own(self, text: str) -> str:
        """JSON with the uids of this test."""
        return text.replace('"soakwatch-', f'"{self.mark}-').replace("/d/soakwatch-", f"/d/{self.mark}-")


@pytest.fixture(scope="module")
def grafana(influx: Influxd) -> Iterator[Grafana]:
    """Data source, folder and dashboards, by the API."""
    token = os.environ.get("GRAFANA_TOKEN")
    head = {"authorization": f"Bearer {token}"} if token else {}
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=os.environ["GRAFANA_URL"], headers=head, timeout=60))
        grafana = Grafana(client, f"swt{secrets.token_hex(4)}")
        source = {
            "name": grafana.mark,
            "uid": SOURCE_UID.replace("soakwatch", grafana.mark),
            "type": "influxdb",
            "access": "proxy",
            "url": influx.url,
            "database": BUCKET,
            "jsonData": {
                "version": "InfluxQL",
                "dbName": BUCKET,
                "httpMode": "POST",
                "httpHeaderName1": "Authorization",
            },
            "secureJsonData": {"httpHeaderValue1": f"Token {influx.token}"},
        }
        grafana.ask("POST", "/api/datasources", source)
        stack.callback(grafana.ask, "DELETE", f"/api/datasources/uid/{source['uid']}")
        grafana.ask("POST", "/api/folders", {"uid": grafana.mark, "title": grafana.mark})
        stack.callback(grafana.ask, "DELETE", f"/api/folders/{grafana.mark}")
        for text in TEXTS.values():
            body = {"dashboard": json.loads(grafana.own(text)), "folderUid": grafana.mark, "overwrite": True}
            grafana.ask("POST", "/api/dashboards/db", body)
        yield grafana


@pytest.mark.parametrize("uid", UIDS)
def test_grafana_keeps_what_it_was_given(grafana: Grafana, uid: str) -> None:
    """The dashboard comes back with all its panels and variables."""
    answer = grafana.ask("GET", f"/api/dashboards/uid/{grafana.own(json.dumps(uid))[1:-1]}").json()
    back = parse(json.dumps(answer["dashboard"]))
    mine = parse(grafana.own(TEXTS[f"{uid}.json"]))
    assert [panel["title"] for panel in panels(back)] == [panel["title"] for panel in panels(mine)]
    assert [row["title"] for row in headings(back)] == [row["title"] for row in headings(mine)]
    assert back["templating"] == mine["templating"]


@pytest.mark.parametrize("uid", UIDS)
def test_grafana_brings_rows_for_every_target(grafana: Grafana, uid: str) -> None:
    """Each query through Grafana's own server, of panels in closed rows too: no error, and values of some run."""
    views = [view_of(uid, run, "dut") for run in RUNS]
    stale = view_of(uid, RUNNING, "dut")
    views.append(View(stale.begin_ms, stale.end_ms + 3_600_000, stale.values))
    for panel in panels(parse(grafana.own(TEXTS[f"{uid}.json"]))):
        missing = {target["refId"] for target in panel["targets"]}
        for view in views:
            queries = [
                {
                    **target,
                    "datasource": {"type": "influxdb", "uid": SOURCE_UID.replace("soakwatch", grafana.mark)},
                    "query": chosen(target["query"], view),
                    "intervalMs": 10_000,
                    "maxDataPoints": 1000,
                }
                for target in panel["targets"]
                if target["refId"] in missing
            ]
            if queries:
                body = {"from": str(view.begin_ms), "to": str(view.end_ms), "queries": queries}
                results = grafana.ask("POST", "/api/ds/query", body).json()["results"]
                assert not [result["error"] for result in results.values() if "error" in result], panel["title"]
                missing -= {
                    name
                    for name, result in results.items()
                    if any(column for frame in result["frames"] for column in frame["data"]["values"])
                }
        assert not missing, (panel["title"], missing)


@pytest.mark.parametrize("uid", RULES)
def test_grafana_takes_and_computes_an_alert_rule(grafana: Grafana, uid: str) -> None:
    """The rule comes back as it was given, and its queries and expressions are computed without an error."""
    rule = json.loads(grafana.own(json.dumps(RULES[uid])))
    body = {**rule, "orgID": 1, "folderUID": grafana.mark, "ruleGroup": grafana.mark}
    for name in ("dashboardUid", "panelId"):  # of files only; the annotations say the same
        del body[name]
    grafana.ask("POST", "/api/v1/provisioning/alert-rules", body)
    try:
        back = grafana.ask("GET", f"/api/v1/provisioning/alert-rules/{rule['uid']}").json()
    finally:
        grafana.ask("DELETE", f"/api/v1/provisioning/alert-rules/{rule['uid']}")
    assert [step["model"]["refId"] for step in back["data"]] == [step["refId"] for step in rule["data"]]
    assert back["annotations"] == rule["annotations"]
    body = {"from": "now-30d", "to": "now", "queries": [step["model"] for step in rule["data"]]}
    results = grafana.ask("POST", "/api/ds/query", body).json()["results"]
    assert not [result["error"] for result in results.values() if "error" in result]


@pytest.mark.parametrize("uid", UIDS)
def test_the_page_shows_its_panels(grafana: Grafana, uid: str, tmp_path: Path) -> None:
    """In a browser, a picture of it in the folder GRAFANA_PICTURES if that is set; no panel says that it failed."""
    browser = needs_chromium()
    view = view_of(uid, RUNS[0], "dut")
    mine = uid.replace("soakwatch", grafana.mark)
    variables = "" if uid in {"soakwatch-fleet", "soakwatch-compare"} else f"&var-run={quote(RUNS[0])}"
    with in_name_of(grafana.client) as url:
        page = f"{url}/d/{mine}?{WALL}&from={view.begin_ms}&to={view.end_ms}{variables}"
        shot = Path(os.environ.get("GRAFANA_PICTURES") or tmp_path) / f"{uid}.png"
        words = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1920,4000",
            "--virtual-time-budget=30000",
        ]
        done = [
            subprocess.run([*words, what, page], capture_output=True, text=True, timeout=120, check=False)
            for what in (f"--screenshot={shot}", "--dump-dom")
        ]
    assert shot.stat().st_size > 20_000, done[0].stderr[-500:]
    document = done[1].stdout
    for panel in list(panels(parse(TEXTS[f"{uid}.json"])))[:4]:
        assert panel["title"] in document
    assert 'data-testid="data-testid Panel status error"' not in document


@contextmanager
def in_name_of(client: httpx.Client) -> Iterator[str]:
    """The address of a server on the loopback that asks with the client's token, which a browser cannot be given."""

    class SinkUnavailableError(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass(None)

        def do_POST(self) -> None:
            self._pass(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _pass(self, body: bytes | None) -> None:
            kind = {} if body is None else {"content-type": self.headers.get("content-type") or "application/json"}
            answer = client.request(self.command, self.path, content=body, headers=kind)
            self.send_response(answer.status_code)
            for name in ("content-type", "location"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Nothing: addresses hold names of runs."""

    with ThreadingHTTPServer(("127.0.0.1", 0), SinkUnavailableError) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
