"""The alert rules: a file that Grafana takes, and the arithmetic of each rule against a real InfluxDB."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from tests.dashboards.alerting import AlertFile, Group, Rule, alarms, values_of_alarms

from soakwatch.transfer.sinks.grafana import ALERT_FOLDER, FOLDER, SOURCE_UID, Grafana, dashboards, provisioning
from soakwatch.transfer.sinks.lines import Value, key, line
from soakwatch_testing.influxd import Influxd, run_influxd

SECOND, MINUTE, HOUR, DAY = 1, 60, 3_600, 86_400
EVERY_S = 10
SINK = "influxdb-1"
PAGE = "http://soak.lab:8080"


def group_of(page: str | None = None) -> Group:
    """The group of rules in the file that is written."""
    text = provisioning(Grafana("http://db", "soak", "t", "/d", page=page))["alerting/soakwatch.yaml"]
    content: AlertFile = yaml.safe_load(text)
    assert set(content) == {"apiVersion", "groups"}  # no contact point, no policy: they are the lab's
    assert content["apiVersion"] == 1
    (group,) = content["groups"]
    return group


RULES = {rule["uid"]: rule for rule in group_of()["rules"]}
FAILED, SILENT, LAG, BACKLOG, STALE = RULES


def test_the_group_lies_in_a_folder_of_its_own() -> None:
    """In Grafana's first organisation, evaluated each minute; no folder of the dashboards' title is made twice."""
    assert ALERT_FOLDER != FOLDER
    group = group_of()
    assert (group["orgId"], group["folder"], group["interval"]) == (1, ALERT_FOLDER, "1m")
    assert len(RULES) == len(group["rules"]) == 5
    assert all(len(uid) <= 40 and uid.startswith("soakwatch-") for uid in RULES)
    assert len({rule["title"] for rule in RULES.values()}) == len(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_asks_what_is_provisioned(rule: Rule) -> None:
    """Its condition is one of its parts, a part is of the provisioned source or an expression on earlier ones."""
    known: set[str] = set()
    for step in rule["data"]:
        model = step["model"]
        assert step["refId"] == model["refId"]
        assert step["refId"] not in known
        assert step["datasourceUid"] == model["datasource"]["uid"]
        if step["datasourceUid"] == "__expr__":
            needed = (
                {model["expression"]} if model["type"] == "reduce" else set(re.findall(r"\$(\w+)", model["expression"]))
            )
            assert needed <= known
        else:
            assert step["datasourceUid"] == SOURCE_UID
            assert model["rawQuery"]
            assert model["resultFormat"] == "time_series"
            assert step["relativeTimeRange"]["from"] > 0
        known.add(step["refId"])
    assert rule["condition"] == rule["data"][-1]["refId"]
    assert (rule["noDataState"], rule["execErrState"]) == ("OK", "Error")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_and_where(rule: Rule) -> None:
    """Its sentence names the run and fields that there are; it leads to a panel of a dashboard; no label holds a ``$``,
    which Grafana would take for its environment's."""
    notes = rule["annotations"]
    assert "{{ $labels.run }}" in notes["summary"]
    assert re.search(r"\d", notes["summary"])
    assert set(re.findall(r"\$values\.(\w+)", notes["summary"])) <= {step["refId"] for step in rule["data"]}
    by = set(re.findall(r'"(\w+)"', rule["data"][0]["model"]["query"].rpartition("GROUP BY")[2]))
    assert set(re.findall(r"\$labels\.(\w+)", " ".join(notes.values()))) <= by
    assert (notes["__dashboardUid__"], notes["__panelId__"]) == (rule["dashboardUid"], str(rule["panelId"]))
    board = json.loads(dashboards()[f"{rule['dashboardUid']}.json"])
    assert rule["panelId"] in {panel["id"] for panel in board["panels"] if panel["type"] != "row"}
    assert f"/d/{rule['dashboardUid']}?var-run=" in notes["dashboard"]
    assert "$" not in json.dumps([rule["labels"], rule["title"], rule["uid"]])


def test_the_page_of_the_run_is_named_where_there_is_one() -> None:
    """With --page each alert leads to the run's page; without it none does."""
    links = {rule["annotations"].get("report") for rule in group_of(f"{PAGE}/")["rules"]}
    assert links == {f"{PAGE}/runs/{{{{ $labels.run | urlquery }}}}/"}
    assert all("report" not in rule["annotations"] for rule in RULES.values())


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the database, by seconds before now; one whose end is 0 still goes on."""

    name: str
    severity: float = -1
    began_s: int = 2 * HOUR
    ended_s: int = 0
    failed: int = 0
    silent_s: int = 0
    lag_s: float = 2
    growth: float = 0

    def lines(self, now_s: int) -> Iterator[bytes]:
        """What the sink writes of it, as far as the rules ask for it."""
        run, begin_s = {"run": self.name}, now_s - self.began_s
        fields: dict[str, Value] = {"verdict": "any", "severity": self.severity, "failed": float(self.failed)}
        fields |= {"rank": self.severity, "begin_ms": begin_s * 1e3, "end_ms": (now_s - self.ended_s) * 1e3}
        yield line(key("soakwatch_verdict", run, {}), fields, begin_s * 10**9)
        for number in range(self.failed):
            tags = {**run, "rule": "memory_growth", "target": "dut", "object": f"process={number}"}
            yield line(key("soakwatch_finding", tags, {}), {"rank": 3.0, "reason": "it grows"}, begin_s * 10**9)
        passed = {**run, "rule": "cpu", "target": "dut"}
        yield line(key("soakwatch_finding", passed, {}), {"rank": 0.0, "reason": "quiet"}, begin_s * 10**9)
        for due_s in range(max(begin_s, now_s - self.ended_s - 20 * MINUTE), now_s - self.ended_s, EVERY_S):
            yield from self._poll(due_s, now_s)

    def _poll(self, due_s: int, now_s: int) -> Iterator[bytes]:
        run, time_ns = {"run": self.name}, due_s * 10**9
        lost = due_s >= now_s - self.ended_s - self.silent_s
        for target, role, source in (("dut", "dut", "snmp"), ("dut", "dut", "ssh"), ("monitor", "monitor", "monitor")):
            ok = 0.0 if lost and source == "snmp" else 1.0
            tags = {**run, "target": target, "role": role, "source": source, "phase": "soak"}
            outcome = "ok" if ok else "timeout"
            yield line(key("soakwatch_poll", {**tags, "outcome": outcome}, {}), {"ok": ok, "error": None}, time_ns)
        of_sink = {**run, "target": "monitor", "role": "monitor", "phase": "soak"}
        yield line(key("monitor.sink.lag", of_sink, {"sink": SINK}), {"value": self.lag_s}, time_ns)
        backlog = 5.0 * (due_s // EVERY_S % 3) + self.growth * (due_s - now_s + 20 * MINUTE)
        yield line(key("monitor.sink.backlog", of_sink, {"sink": SINK}), {"value": backlog}, time_ns)


HEALTHY = Run("20260101T000000Z-well (nightly+)")
FAILED_LONG_AGO = Run("20251230T000000Z-old", 3, began_s=3 * DAY, ended_s=2 * DAY, failed=1)
ENDED_BADLY = Run("20260101T000000Z-ended", 0, ended_s=15 * MINUTE, silent_s=5 * MINUTE, lag_s=300)
OTHERS = (HEALTHY, FAILED_LONG_AGO, ENDED_BADLY)
BAD = Run("20260102T000000Z-bad")


@pytest.fixture(scope="module")
def server(influxd_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    """A database without a run; each test has a bucket of its own."""
    with run_influxd(influxd_program, tmp_path_factory.mktemp("alerts")) as influxd:
        yield influxd


def raised(server: Influxd, bucket: str, *runs: Run) -> Mapping[str, set[tuple[str, ...]]]:
    """The labels' values, sorted by the labels' names, of the alarms of each rule that has any."""
    now_s = int(time.time())
    server.make_bucket(bucket)
    server.write(b"\n".join(text for run in runs for text in run.lines(now_s)), bucket).raise_for_status()
    alarming = {uid: alarms(rule, server, bucket, int(time.time() * 1000)) for uid, rule in RULES.items()}
    return {uid: {tuple(value for _, value in sorted(labels)) for labels in of} for uid, of in alarming.items() if of}


@pytest.mark.parametrize("runs", [(HEALTHY,), OTHERS, (HEALTHY, FAILED_LONG_AGO), (ENDED_BADLY, HEALTHY)])
def test_a_healthy_run_alarms_nobody(server: Influxd, runs: tuple[Run, ...], request: pytest.FixtureRequest) -> None:
    """Nor does what failed days ago, nor a run that ended while a source was silent and the sink late."""
    assert raised(server, request.node.name, *runs) == {}


@pytest.mark.parametrize("others", [(), (FAILED_LONG_AGO,), OTHERS], ids=["alone", "one", "all"])
@pytest.mark.parametrize(
    ("bad", "uid", "labels"),
    [
        (replace(BAD, failed=3), FAILED, ("memory_growth", BAD.name, "dut")),
        (replace(BAD, failed=1, severity=3, ended_s=30 * MINUTE), FAILED, ("memory_growth", BAD.name, "dut")),
        (replace(BAD, silent_s=5 * MINUTE), SILENT, (BAD.name, "snmp", "dut")),
        (replace(BAD, lag_s=61), LAG, (BAD.name, SINK)),
        (replace(BAD, growth=1), BACKLOG, (BAD.name, SINK)),
        (replace(BAD, ended_s=11 * MINUTE), STALE, (BAD.name,)),
        (replace(BAD, began_s=9 * DAY, ended_s=3 * DAY), STALE, (BAD.name,)),
    ],
    ids=["failing", "failed", "silent", "late", "backlog", "killed", "killed-days-ago"],
)
def test_what_is_wrong_alarms_by_its_own_rule(
    server: Influxd,
    bad: Run,
    uid: str,
    labels: tuple[str, ...],
    others: tuple[Run, ...],
    request: pytest.FixtureRequest,
) -> None:
    """Exactly one alarm, of this rule, that names what it is about, whatever runs lie beside it."""
    assert raised(server, request.node.name, bad, *others) == {uid: {labels}}


@pytest.mark.parametrize(
    ("bad", "uid"),
    [
        (replace(BAD, failed=1), FAILED),
        (replace(BAD, failed=1, severity=3, ended_s=30 * MINUTE), FAILED),
        (replace(BAD, failed=1, severity=-2, ended_s=30 * MINUTE), FAILED),
        (replace(BAD, failed=1, severity=0, ended_s=30 * MINUTE), FAILED),
        (replace(BAD, silent_s=5 * MINUTE), SILENT),
        (replace(BAD, lag_s=61), LAG),
        (replace(BAD, growth=1), BACKLOG),
        (replace(BAD, began_s=9 * DAY, ended_s=3 * DAY), STALE),
    ],
)
def test_a_link_opens_the_time_of_the_run(server: Influxd, bad: Run, uid: str, request: pytest.FixtureRequest) -> None:
    """From its begin to its end, or until now while it goes on: a run of yesterday opened on the last 24 h."""
    now_s = int(time.time())
    server.make_bucket(request.node.name)
    runs = (bad, *OTHERS)
    server.write(b"\n".join(text for run in runs for text in run.lines(now_s)), request.node.name).raise_for_status()
    (values,) = values_of_alarms(RULES[uid], server, request.node.name, int(time.time() * 1000)).values()
    goes_on = bad.severity == -1
    window = {"begin": (now_s - bad.began_s) * 1e3, "end": 0 if goes_on else (now_s - bad.ended_s) * 1e3}
    assert {name: values[name] for name in window} == window
    begin, end = window["begin"], "now" if goes_on else f"{window['end']:.0f}"
    (link,) = {rule["annotations"]["dashboard"] for rule in RULES.values() if rule["uid"] == uid}
    assert expanded(link, values).endswith(f"&from={begin:.0f}&to={end}")
    assert expanded(link, {}).endswith("&from=now-24h&to=now")


def expanded(text: str, values: Mapping[str, float]) -> str:
    """The numbers of a link as Go's templates write them: ``with`` of a number that is not there takes its ``else``."""

    def of(match: re.Match[str]) -> str:
        name, otherwise = match[1], match[3]
        return otherwise if not values.get(name) and (name not in values or match[2]) else f"{values[name]:.0f}"

    return re.sub(
        r"\{\{ with \$values\.(\w+) \}\}(\{\{ if \.Value \}\})?\{\{ printf \"%\.0f\" \.Value \}\}"
        r"(?:\{\{ else \}\}now\{\{ end \}\})?\{\{ else \}\}([\w-]+)\{\{ end \}\}",
        of,
        text,
    )


@pytest.mark.parametrize(
    "bad",
    [
        replace(BAD, failed=1, severity=3, ended_s=61 * MINUTE),
        replace(BAD, ended_s=9 * MINUTE),
        replace(BAD, ended_s=8 * DAY, began_s=9 * DAY),
        replace(BAD, severity=-2, ended_s=11 * MINUTE),
        replace(BAD, lag_s=59),
        replace(BAD, began_s=9 * MINUTE, growth=1),
    ],
    ids=[
        "failed-over-an-hour-ago",
        "quiet-for-9-minutes",
        "killed-long-ago",
        "known-as-broken-off",
        "lag-within",
        "just-begun",
    ],
)
def test_what_is_within_the_limits_alarms_nobody(server: Influxd, bad: Run, request: pytest.FixtureRequest) -> None:
    """Just before a limit, and after what is history."""
    assert raised(server, request.node.name, bad, HEALTHY) == {}
