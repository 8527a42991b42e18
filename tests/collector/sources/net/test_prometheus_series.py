"""A Prometheus as a source of whole series: real servers of Debian, with holes, restarts and series that end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from tests.needs import needs

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.model import OUTCOME_NUMBERS
from soakwatch.sources.abc import BackfilledPoll, SourceContext, SourceError
from soakwatch.sources.pollers.prometheus import Config, start
from soakwatch.sources.pollers.prometheus.series_poller import SeriesPoller
from soakwatch_model.sample import Answer, PollOutcome, Sample
from soakwatch_testing.ports import free_port
from soakwatch_testing.prometheus import Job, Prometheus, exporter, start_node_exporter, start_prometheus
from soakwatch_testing.records import SECOND
from soakwatch_testing.victoria import find_victoria, start_victoria

SITE = SourceContext("dut", "dut", (), None, Path(), time.time_ns, 0.5)
_DEADLINE_S = 120.0


@dataclass
class Polled:
    """What polls brought: answers, sentences of polls that failed, and polls that were recovered."""

    answers: list[Answer] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    recovered: list[BackfilledPoll] = field(default_factory=list)

    @property
    def samples(self) -> list[Sample]:
        """All of them, in order of time."""
        late = [sample for poll in self.recovered for sample in poll.answer.samples]
        return sorted([*late, *(s for answer in self.answers for s in answer.samples)], key=lambda s: s.time_ns)

    def of(self, metric: str, name: str = "") -> list[Sample]:
        """The samples of one series, in order of time."""
        return [sample for sample in self.samples if (sample.metric, sample.object) == (metric, name)]


async def poll(poller: SeriesPoller, polled: Polled, until: Callable[[Polled], bool]) -> None:
    """Polls every half second until it is so."""
    deadline = time.monotonic() + _DEADLINE_S
    while not until(polled):
        assert time.monotonic() < deadline, (polled.failures[-3:], polled.answers[-3:])
        try:
            polled.answers.append(await poller.poll(time.time_ns()))
        except SourceError as error:
            polled.failures.append(str(error))
        polled.recovered += poller.recovered()
        await asyncio.sleep(0.5)


def with_poller(keys: dict[str, object], steps: Callable[[SeriesPoller], Awaitable[None]]) -> None:
    """Runs ``steps`` with the poller of these keys."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate({"step": "500ms", **keys}), SITE, stack)
            assert isinstance(poller, SeriesPoller)
            await steps(poller)

    asyncio.run(run())


@dataclass
class Lab:
    """A Prometheus that scrapes every half second: node_exporter, ``load`` (node_load1 is ``loads``), ``vpp`` and
    ``twin``, two hosts with one metric. An exporter whose name is not in ``alive`` answers with an error."""

    server: Prometheus
    ports: dict[str, int]
    alive: set[str]
    pages: dict[str, str]

    def page(self, name: str) -> Callable[[], str]:
        """The page of an exporter."""
        return lambda: self.pages[name] if name in self.alive else ""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One for all tests: Prometheus takes five seconds until it scrapes."""
    needs("prometheus", "prometheus-node-exporter")
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        made = Lab(Prometheus(folder, free_port()), {"node": start_node_exporter(folder, stack)}, set(), {})
        made.pages |= {"load": "node_load1 1\n", "vpp": "vpp_buffers 7\n"}
        made.pages |= {"twin1": "node_load1 1\n", "twin2": "node_load1 9\n"}
        for name in made.pages:
            made.alive.add(name)
            made.ports[name] = stack.enter_context(exporter(made.page(name)))
        ports = made.ports
        made.server.jobs = [
            *(Job(name, [ports[name]]) for name in ("node", "load", "vpp")),
            Job("twin", [ports["twin1"], ports["twin2"]]),
        ]
        stack.callback(made.server.stop)
        made.server.start()
        yield made


def test_node_exporter_needs_no_mapping(lab: Lab) -> None:
    """``prometheus: {url, query, step}``: CPU, memory and interfaces of a real node_exporter, with the times of its
    scrapes and each value once; the facts name the server and what is not sampled."""

    async def steps(poller: SeriesPoller) -> None:
        polled = Polled()
        await poll(poller, polled, lambda polled: len(polled.of("system.cpu.utilization")) >= 3)
        memory, cpu = polled.of("system.memory.limit"), polled.of("system.cpu.utilization")
        times = [sample.time_ns for sample in memory]
        assert len(set(times)) == len(times) >= 4
        assert all(0 <= sample.value <= 1 for sample in cpu)
        assert polled.of("system.cpu.load", "minutes=15")
        assert isinstance(polled.of("system.context_switches")[0].value, int)
        now_ns = time.time_ns()
        assert all(0 <= now_ns - time_ns < 60e9 for time_ns in times)
        facts = poller.facts()
        assert facts.identity["server"].startswith(f"{lab.server.url} (version ")
        assert "version" not in facts.identity, "that would be the device's"
        assert facts.identity["query"] == '{job="node"}'
        assert "names of the answer are not sampled (" in facts.notes[0]

    with_poller({"url": lab.server.url, "query": '{job="node"}'}, steps)


@pytest.mark.slow
def test_a_stopped_server_leaves_a_hole_and_a_restarted_exporter_a_reset(tmp_path: Path) -> None:
    """While Prometheus is down polls fail and nothing is made up; counters are raw, so a restart of the exporter
    shows; no time comes twice."""
    needs("prometheus")
    count = cycle(range(12))
    with ExitStack() as stack:
        port = stack.enter_context(exporter(lambda: f"node_forks_total {next(count)}\nnode_load1 0.5\n"))
        server = start_prometheus(tmp_path / "prometheus", stack, [Job("node", [port])])

        async def steps(poller: SeriesPoller) -> None:
            polled = Polled()
            await poll(poller, polled, lambda polled: len(polled.of("system.cpu.load", "minutes=1")) >= 3)
            assert not polled.failures or "in the last" in polled.failures[0]
            server.stop()
            stopped_ns, failures = time.time_ns(), len(polled.failures)
            await poll(poller, polled, lambda polled: len(polled.failures) >= failures + 3)
            assert "refuses" in polled.failures[-1] or "connect" in polled.failures[-1]
            server.start()
            back_ns = time.time_ns()
            await poll(
                poller,
                polled,
                lambda polled: any(
                    before.value > after.value for before, after in pairwise(polled.of("system.processes.created"))
                ),
            )
            load = polled.of("system.cpu.load", "minutes=1")
            times = [sample.time_ns for sample in load]
            assert len(set(times)) == len(times)
            # Nothing was scraped while it was down (a scrape that had begun may end; the clocks agree within 0.2 s).
            assert not [time_ns for time_ns in times if stopped_ns + 0.2e9 < time_ns < back_ns - 2e9]
            assert times[-1] > back_ns - 2e9

        with_poller({"url": server.url, "query": ["node_load1", "node_forks_total"]}, steps)


def test_a_series_that_ends_is_not_repeated(lab: Lab) -> None:
    """An exporter goes on without one of its series, which Prometheus marks as stale: it ends, the others do not."""
    ends, goes_on = "name=vpp_frames,labels=", "name=vpp_buffers,labels="
    lab.pages["vpp"] = "vpp_buffers 7\nvpp_frames 3\n"

    async def steps(poller: SeriesPoller) -> None:
        polled = Polled()
        await poll(poller, polled, lambda polled: len(polled.of("exporter.gauge", ends)) >= 3)
        lab.pages["vpp"] = "vpp_buffers 7\n"
        ended_ns = time.time_ns()
        most = len(polled.of("exporter.gauge", goes_on)) + 8
        await poll(poller, polled, lambda polled: len(polled.of("exporter.gauge", goes_on)) >= most)
        assert polled.of("exporter.gauge", ends)[-1].time_ns < ended_ns + 2 * SECOND
        assert polled.of("exporter.gauge", goes_on)[-1].time_ns > ended_ns + 2 * SECOND

    with_poller({"url": lab.server.url, "query": '{job="vpp"}', "keep": ["vpp_*"]}, steps)


def test_an_exporter_that_died_is_a_gap(lab: Lab) -> None:
    """An exporter that answers no more has no value, although Prometheus would repeat its last one for five minutes: in
    selectors and in expressions. One of two that died is a fault of its series; if both did the poll fails."""
    kept = "name=vpp_buffers,labels="
    keys: dict[str, object] = {
        "url": lab.server.url,
        "query": ['{job=~"load|vpp"}', {"name": "both", "expr": 'sum(node_load1{job="load"}) + 1'}],
        "keep": ["vpp_*", "both"],
        "delay": "0s",
    }

    async def steps(poller: SeriesPoller) -> None:
        polled = Polled()
        both = "name=both,labels="
        await poll(
            poller,
            polled,
            lambda polled: len(polled.of("exporter.gauge", kept)) >= 3 and len(polled.of("exporter.gauge", both)) >= 2,
        )
        assert {sample.value for sample in polled.of("exporter.gauge", both)} == {2.0}
        lab.alive.remove("vpp")
        polled.answers.clear()
        await poll(poller, polled, lambda polled: any(answer.faults for answer in polled.answers))
        fault = next(fault for answer in polled.answers for fault in answer.faults)
        assert (fault.metric, fault.object) == ("exporter.gauge", kept)
        assert f"vpp 127.0.0.1:{lab.ports['vpp']} has no new value since" in fault.text
        lab.alive.remove("load")
        died_ns, failures = time.time_ns(), len(polled.failures)
        await poll(poller, polled, lambda polled: len(polled.failures) >= failures + 4)
        assert "has no new value of" in polled.failures[-1]
        assert "does it still scrape, and every 500 ms (step)?" in polled.failures[-1]
        late = [sample for sample in polled.samples if sample.time_ns > died_ns + 1.5e9]
        assert not late, late
        lab.alive |= {"load", "vpp"}
        answered = len(polled.answers)
        await poll(poller, polled, lambda polled: len(polled.answers) >= answered + 2)

    with_poller(keys, steps)


@pytest.mark.slow
def test_what_was_missed_is_fetched_later(lab: Lab) -> None:
    """While the monitor could not reach Prometheus, that went on: its samples come as the polls that were lost, each at
    most once, and the series has no hole."""

    async def steps(poller: SeriesPoller) -> None:
        polled = Polled()
        await poll(poller, polled, lambda polled: len(polled.of("system.cpu.load", "minutes=1")) >= 3)
        await asyncio.sleep(4)  # the monitor is away: no condition can be waited for
        await poll(poller, polled, lambda polled: bool(polled.recovered))
        dues = [late.start_ns for late in polled.recovered]
        assert len(set(dues)) == len(dues) >= 5
        assert dues == sorted(dues)
        assert all(
            late.start_ns - 0.5e9 < sample.time_ns <= late.start_ns
            for late in polled.recovered
            for sample in late.answer.samples
        )
        times = [sample.time_ns for sample in polled.of("system.cpu.load", "minutes=1")]
        assert len(set(times)) == len(times)
        assert max(after - before for before, after in pairwise(times)) < 2e9

    with_poller({"url": lab.server.url, "query": 'node_load1{job="load"}'}, steps)


@pytest.mark.slow
def test_victoria_metrics_is_asked_alike(lab: Lab, tmp_path: Path) -> None:
    """It tells its clock in whole seconds, and scrapes by itself here: the times of the samples are right, each comes
    once, and expressions have their values."""
    program = find_victoria()
    if program is None:
        needs("victoria-metrics")
    assert program is not None
    scraped = [{"job_name": "load", "static_configs": [{"targets": [f"127.0.0.1:{lab.ports['load']}"]}]}]
    config = tmp_path / "scrape.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scraped}))
    expression = {"name": "more", "expr": "sum(node_load1) + 1"}
    with ExitStack() as stack:
        url = start_victoria(program, tmp_path / "victoria", stack, f"-promscrape.config={config}").url

        async def steps(poller: SeriesPoller) -> None:
            polled, more = Polled(), "name=more,labels="
            await poll(
                poller,
                polled,
                lambda polled: (
                    len(polled.of("system.cpu.load", "minutes=1")) >= 3 and len(polled.of("exporter.gauge", more)) >= 2
                ),
            )
            times = [sample.time_ns for sample in polled.of("system.cpu.load", "minutes=1")]
            assert len(set(times)) == len(times)
            assert abs(time.time_ns() - times[-1]) < 20e9
            assert {sample.value for sample in polled.of("exporter.gauge", more)} == {2.0}

        with_poller({"url": url, "query": ["node_load1", expression], "keep": ["more"], "step": "1s"}, steps)


def test_two_exporters_are_not_mixed(lab: Lab) -> None:
    """A query that gives the load of two hosts says so and how to select one."""

    async def steps(poller: SeriesPoller) -> None:
        polled = Polled()
        await poll(poller, polled, lambda polled: any("comes from" in failure for failure in polled.failures))
        failure = next(failure for failure in polled.failures if "comes from" in failure)
        first, second = sorted((lab.ports["twin1"], lab.ports["twin2"]), key=str)
        assert failure.startswith(
            f"system.cpu.load comes from twin 127.0.0.1:{first} and twin 127.0.0.1:{second}: select one"
        )

    with_poller({"url": lab.server.url, "query": 'node_load1{job="twin"}'}, steps)


@pytest.mark.slow
def test_a_run_by_prometheus_has_its_hole_as_a_gap(tmp_path: Path) -> None:
    """A whole run: Prometheus is stopped and started amid it, and that is a source that did not answer; the samples of
    the device are those that were scraped, none is made up, and the run does not pass."""
    needs("prometheus", "prometheus-node-exporter")
    with ExitStack() as stack:
        node = start_node_exporter(tmp_path, stack)
        server = start_prometheus(tmp_path / "prometheus", stack, [Job("node", [node])])
        server.wait_for("node_load1")
        keys = {"url": server.url, "query": f'{{instance="127.0.0.1:{node}"}}', "step": "1s"}
        targets = {"fw": {"role": "dut", "sources": [{"prometheus": keys}]}}
        (tmp_path / "plan.yaml").write_text(json.dumps({"name": "night", "duration": "24s", "targets": targets}))
        command = [str(Path(sys.executable).with_name("soakwatch")), "run", "plan.yaml", "--runs", "runs"]
        stack.enter_context(hole(server, 6, 7))
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "fw/prometheus did not answer" in ran.stdout
    (folder,) = (tmp_path / "runs").glob("*night*")
    with RecordView.open(folder) as view:
        load = view.series(SeriesKey("fw", "system.cpu.load", "minutes=1"))
        (source,) = [source for source in view.sources() if source.target == "fw"]
        outcomes = view.poll_outcomes(source.id, 0)
    gap = int(np.diff(load.time_ns).argmax())
    begin_ns, end_ns = load.time_ns[gap], load.time_ns[gap + 1]
    assert end_ns - begin_ns > 4 * SECOND
    inside = (outcomes.due_ns > begin_ns + SECOND) & (outcomes.due_ns < end_ns - SECOND)
    assert inside.sum() >= 3
    assert not (outcomes.outcome[inside] == OUTCOME_NUMBERS[PollOutcome.OK]).any()


@pytest.mark.slow
def test_a_resumed_run_has_what_was_scraped_meanwhile(tmp_path: Path) -> None:
    """The monitor is killed and comes back later: the polls of that time are filled from Prometheus, and nothing is
    there twice."""
    needs("prometheus", "prometheus-node-exporter")
    soakwatch = str(Path(sys.executable).with_name("soakwatch"))
    with ExitStack() as stack:
        node = start_node_exporter(tmp_path, stack)
        server = start_prometheus(tmp_path / "prometheus", stack, [Job("node", [node])])
        server.wait_for("node_load1")
        keys = {"url": server.url, "query": f'{{instance="127.0.0.1:{node}"}}', "step": "1s"}
        targets = {"fw": {"role": "dut", "sources": [{"prometheus": keys}]}}
        (tmp_path / "plan.yaml").write_text(json.dumps({"name": "night", "duration": "40s", "targets": targets}))
        run = subprocess.Popen(
            [soakwatch, "run", "plan.yaml", "--runs", "runs"], cwd=tmp_path, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + _DEADLINE_S
        while not any(read_load(folder) >= 6 for folder in (tmp_path / "runs").glob("*night*")):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        run.kill()
        run.wait()
        time.sleep(8)  # the monitor is away: no condition can be waited for
        resume = [soakwatch, "resume", "last", "--runs", "runs"]
        ran = subprocess.run(resume, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode in {0, 1, 3}, ran.stdout + ran.stderr
    (folder,) = (tmp_path / "runs").glob("*night*")
    with RecordView.open(folder) as view:
        load = view.series(SeriesKey("fw", "system.cpu.load", "minutes=1"))
    apart = np.diff(load.time_ns)
    assert apart.max() < 3 * SECOND, (ran.stdout, apart / SECOND)
    assert apart.min() > 0  # Prometheus on a busy machine reads twice within milliseconds


def read_load(folder: Path) -> int:
    """How many samples of the load a run has so far."""
    try:
        with RecordView.open(folder) as view:
            return len(view.series(SeriesKey("fw", "system.cpu.load", "minutes=1")))
    except RecordError:
        return 0


@contextmanager
def hole(server: Prometheus, after_s: float, length_s: float) -> Iterator[None]:
    """Stops a server some seconds from now, and starts it again."""
    timers = [threading.Timer(after_s, server.stop), threading.Timer(after_s + length_s, server.start)]
    for timer in timers:
        timer.start()
    yield
    for timer in timers:
        timer.join()


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"query": "up"}, "step is missing"),
        ({"query": "sum(up)", "step": "15s"}, "the values of an expression have no name"),
        ({"step": "15s"}, "step and delay are of query"),
    ],
)
def test_keys_that_contradict_each_other(keys: dict[str, object], sentence: str) -> None:
    """Each is refused with what to write."""
    with pytest.raises(ValidationError, match=sentence):
        Config.model_validate({"url": "http://127.0.0.1:1", **keys})
    assert Config.model_validate({"url": "http://h", "query": "up", "step": "15s"}).interval == 15


def test_a_wrong_query_and_a_wrong_server(lab: Lab) -> None:
    """Prometheus's own sentence is shown; a page that is no Prometheus is said to be none."""

    async def refused(poller: SeriesPoller) -> None:
        with pytest.raises(SourceError, match=r"refuses the query: .*parse error"):
            await poller.poll(time.time_ns())

    url = lab.server.url
    with_poller({"url": url, "query": [{"name": "x", "expr": "sum("}]}, refused)
    with pytest.raises(SourceError, match="not as Prometheus does"):
        with_poller({"url": f"http://127.0.0.1:{lab.ports['load']}", "query": "up"}, refused)
    with pytest.raises(PlanError, match="unknown map 'nod'"):
        with_poller({"url": url, "query": "up", "maps": ["nod"]}, refused)
