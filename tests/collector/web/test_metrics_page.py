"""What Prometheus can scrape: by its own strict parser, bounded, and never a reading that is old."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.needs import needs

from soakwatch.record import Record, SeriesKey
from soakwatch.web.openmetrics import Families, Reading, add_readings, unit_of
from soakwatch.web.routes import metrics
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric import CATALOGUE
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window
from soakwatch_testing.prometheus import Job, start_prometheus
from soakwatch_testing.records import SECOND
from soakwatch_testing.served import ServedRun

MEDIA = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.fixture
def scraper(served: ServedRun) -> Iterator[httpx.Client]:
    """Prometheus, with the token of the server."""
    assert served.token_file is not None
    headers = {"authorization": f"Bearer {served.token_file.read_text(encoding='ascii').strip()}"}
    with httpx.Client(base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240) as connection:
        yield connection


@pytest.fixture
def going_on(run: Path) -> Iterator[Record]:
    """The record of the run while it is being written."""
    with Record.open(run) as record:
        yield record


def families(text: str) -> Mapping[str, Metric]:
    """What the strict parser of OpenMetrics reads."""
    read = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]  # it has no types
    return {metric.name: metric for metric in cast("list[Metric]", read)}


def values(metric: Metric) -> dict[tuple[str, ...], float]:
    """The values of a metric by the values of its labels, in order of their names."""
    return {tuple(sample.labels[name] for name in sorted(sample.labels)): sample.value for sample in metric.samples}


def polled(record: Record, at_ns: int, *samples: tuple[str, str, float], outcome: PollOutcome = PollOutcome.OK) -> None:
    """One poll of another source of the device."""
    source = record.source("dut", "other", "other", SECOND, required=False)
    record.target("dut", "dut")
    object_ = tuple(Sample(metric, object_, value, at_ns) for metric, object_, value in samples)
    answer = Answer(object_ if outcome is PollOutcome.OK else (), (), ())
    record.put([Poll(source.id, at_ns, at_ns, 1, outcome, None if outcome is PollOutcome.OK else "no", answer)])


def finding(outcome: Outcome) -> Finding:
    """A finding of which only the outcome matters."""
    return Finding("cpu_spike", 1, outcome, "dut", "system.uptime", "", Window(0, 1), "defined", "reason", 10)


def test_a_run_that_goes_on(scraper: httpx.Client, going_on: Record) -> None:
    """State, time, polls and findings by outcome; every unit and type as the strict parser wants it."""
    last_ns = going_on.last_ns
    assert last_ns is not None
    polled(going_on, last_ns, ("system.uptime", "", 5.0))
    polled(going_on, last_ns + SECOND, outcome=PollOutcome.TIMEOUT)
    going_on.put_findings([finding(Outcome.FAIL), finding(Outcome.PASS)], live=True, judged_ns=last_ns)
    answer = scraper.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, MEDIA)
    assert answer.text.endswith("# EOF\n")
    metrics = families(answer.text)
    assert values(metrics["soakwatch_run_state"]) == {
        ("run", "waiting"): 0.0,
        ("run", "running"): 1.0,
        ("run", "ended"): 0.0,
        ("run", "broken off"): 0.0,
    }
    assert 595 < values(metrics["soakwatch_run_elapsed_seconds"])[("run",)] < 700
    assert metrics["soakwatch_run_elapsed_seconds"].unit == "seconds"
    assert values(metrics["soakwatch_findings"]) == {
        ("fail", "run"): 1.0,
        ("warn", "run"): 0.0,
        ("inconclusive", "run"): 0.0,
        ("pass", "run"): 1.0,
    }
    polls = metrics["soakwatch_polls"]
    assert polls.type == "counter"
    assert values(polls) == {
        ("ok", "run", "dut/local", "dut"): 601.0,
        ("ok", "run", "dut/other", "dut"): 1.0,
        ("timeout", "run", "dut/other", "dut"): 1.0,
    }
    assert values(metrics["soakwatch_finding"]) == {("system.uptime", "", "fail", "", "cpu_spike", "run", "dut"): 1.0}
    assert set(values(metrics["soakwatch_run_verdict"]).values()) == {0.0}, "a run that goes on has none"
    assert ("soak", "run", "dut") in values(metrics["soakwatch_system_uptime_seconds"])


def test_the_newest_readings_of_a_run_that_is_named(scraper: httpx.Client, going_on: Record) -> None:
    """Under their own names with their units; what is older than a minute is not there."""
    last_ns = going_on.last_ns
    assert last_ns is not None
    object_ = object_text(core=3)
    polled(going_on, last_ns - 200 * SECOND, ("system.memory.usage", "", 7.0))
    polled(going_on, last_ns, ("system.cpu.core.utilization", object_, 0.25), ("system.context_switches", "", 12.0))
    metrics = families(scraper.get("/metrics", params={"run": "last"}).text)
    assert values(metrics["soakwatch_system_cpu_core_utilization_ratio"]) == {("3", "soak", "run", "dut"): 0.25}
    switches = metrics["soakwatch_system_context_switches"]
    assert (switches.type, switches.documentation) == ("counter", "context switches since boot")
    assert [sample.name for sample in switches.samples] == ["soakwatch_system_context_switches_total"]
    assert "soakwatch_system_uptime_seconds" in metrics
    assert "soakwatch_system_memory_usage_bytes" not in metrics
    assert values(metrics["soakwatch_series_left_out"]) == {("run",): 0.0}


def test_no_more_than_the_most(scraper: httpx.Client, going_on: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted."""
    monkeypatch.setattr(metrics, "MAX_SERIES", 10)
    last_ns = going_on.last_ns
    assert last_ns is not None
    polled(
        going_on,
        last_ns,
        *((f"system.{name}", "", 1.0) for name in ("memory.usage", "processes")),
        *(("system.cpu.core.utilization", object_text(core=core), 0.5) for core in range(20)),
    )
    exposed = families(scraper.get("/metrics", params={"run": "run"}).text)
    assert len(exposed["soakwatch_system_cpu_core_utilization_ratio"].samples) == 10
    assert values(exposed["soakwatch_series_left_out"]) == {("run",): 13.0}


def test_a_run_that_is_over_keeps_its_last_readings(scraper: httpx.Client) -> None:
    """State, verdict and what the device showed at the end are there as long as the run is; ``ended`` says of how many
    runs, and one that is named is told in any case."""
    for words in ({}, {"run": "run"}, {"ended": "0", "run": "run"}):
        metrics = families(scraper.get("/metrics", params=words).text)
        assert values(metrics["soakwatch_run_state"])["run", "broken off"] == 1.0
        assert values(metrics["soakwatch_system_uptime_seconds"])
    assert families(scraper.get("/metrics", params={"ended": "0"}).text) == {}
    assert scraper.get("/metrics", params={"ended": "51"}).status_code == 400
    assert scraper.get("/metrics", params={"run": "moon"}).status_code == 404
    assert scraper.get("/metrics", params={"format": "xml"}).status_code == 400


def test_promtool_has_nothing_to_say(scraper: httpx.Client) -> None:
    """The plain format passes ``promtool check metrics``, its linter."""
    needs("promtool")
    answer = scraper.get("/metrics", params={"format": "text"})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    checked = subprocess.run(["promtool", "check", "metrics"], input=answer.content, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_promtool_reads_every_metric() -> None:
    """Every metric of the catalogue at once, with what a label could be called: the linter would only have links in
    bytes, which people count in bits."""
    needs("promtool")
    exposed = Families()
    readings = [
        Reading(SeriesKey("dut", m.name, object_text(**dict.fromkeys(m.labels, "x"))), m.unit, m.kind, 1.0)
        for m in CATALOGUE
    ]
    add_readings(exposed, "run", readings, "soak")
    text = exposed.text(plain=True)
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    said = (checked.stdout + checked.stderr).decode().splitlines()
    assert [line for line in said if 'use base unit "bytes" instead of "bits"' not in line] == []
    assert checked.returncode == 3


@pytest.mark.slow
def test_a_real_prometheus_scrapes_it(served: ServedRun, tmp_path: Path) -> None:
    """With the token: the verdict, the state and the device's series with run and target are there to be queried."""
    needs("prometheus")
    assert served.token_file is not None
    secured = served.url.startswith("https")
    job = Job(
        "soakwatch",
        [int(served.url.rpartition(":")[2].rstrip("/"))],
        {
            "scheme": "https" if secured else "http",
            "authorization": {"credentials_file": str(served.token_file)},
            **({"tls_config": {"insecure_skip_verify": True}} if secured else {}),
        },
    )
    with ExitStack() as stack:
        prometheus = start_prometheus(tmp_path, stack, [job])
        prometheus.wait_for('soakwatch_run_state{state="broken off"} == 1')
        (found,) = prometheus.values('soakwatch_system_uptime_seconds{target="dut"}')
        assert dict(found)["run"] == "run"


def test_strangers_get_nothing(served: ServedRun) -> None:
    """As everywhere else."""
    answer = httpx.get(f"{served.url}/metrics", trust_env=False, verify=False, timeout=240)
    assert answer.status_code == 401


def test_every_metric_of_the_catalogue_can_be_exposed() -> None:
    """All at once: each has a name of its own that the strict parser takes."""
    exposed = Families()
    readings = [
        Reading(
            SeriesKey("dut", metric.name, object_text(**dict.fromkeys(metric.labels, "x"))),
            metric.unit,
            metric.kind,
            1.0,
        )
        for metric in CATALOGUE
    ]
    add_readings(exposed, "run", readings)
    assert exposed.left == 0
    assert len(families(exposed.text().decode())) == len(CATALOGUE)


HOSTILE = (
    "<script>alert(1)</script>",
    'a"b\\c\nd',
    "\u202egnp.exe",
    "😀",
    "\ud800",
    "\x00\x1b[31m",
    "x" * 5000,
    "",
    "{}",
)


def test_hostile_names_are_text() -> None:
    """Names and labels of anybody's series: parsed again, with one value each, and the file stays whole."""
    exposed = Families()
    readings = [
        Reading(SeriesKey(name, f"their.{name}", object_text(process=name, run=name)), name, "gauge", 1.0)
        for name in HOSTILE
    ]
    readings += [Reading(SeriesKey("t", "some.free", name), "By", "counter", math.pi) for name in HOSTILE]
    readings += [Reading(SeriesKey("t", name, ""), "1", "gauge", 2.0) for name in ("a.b", "a_b", "c", "c.total")]
    readings += [Reading(SeriesKey("t", "c", "x=1"), "", "counter", 2.0)]
    add_readings(exposed, "run", readings)
    metrics = families(exposed.text().decode())
    assert exposed.left >= 1, "a_b is a.b already"
    labelled = [sample for metric in metrics.values() for sample in metric.samples]
    assert len(labelled) == len(readings) - exposed.left
    assert max(len(text) for sample in labelled for text in sample.labels.values()) <= 300


@pytest.mark.parametrize(
    ("unit", "word"), [("By", "bytes"), ("bit/s", "bits_per_second"), ("{packet}", ""), ("Cel", "celsius"), ("", "")]
)
def test_units(unit: str, word: str) -> None:
    """UCUM as Prometheus writes it."""
    assert unit_of(unit) == word
