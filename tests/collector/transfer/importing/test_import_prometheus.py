"""``soakwatch import --prometheus``: last night's data of a real Prometheus, with a hole, a reset and an end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from tests.in_process import command_here
from tests.needs import needs

from soakwatch.record import RecordView, SeriesKey
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.prometheus_options import import_prometheus
from soakwatch_testing.prometheus import Prometheus, start_prometheus, stored

STEP_S = 15
HOURS = 4


def night(end_s: float) -> str:
    """Four hours of two hosts in OpenMetrics: fw1 leaks 400 MiB/h, forks processes and was restarted after two hours,
    fw2 is calm and ends after three; between 1:00 and 1:10 nobody scraped."""
    begin_s = end_s - HOURS * 3600
    lines: dict[str, list[str]] = {name: [f"# TYPE {name} {kind}"] for name, kind in _KINDS.items()}
    rng = np.random.default_rng(35)
    for number in range(HOURS * 3600 // STEP_S + 1):
        at = number * STEP_S
        if 3600 <= at < 4200:
            continue
        for host in ("fw1", "fw2"):
            if host == "fw2" and at > 3 * 3600:
                continue
            labels = f'instance="{host}:9100",job="node"'
            leak = 400 * 2**20 * at / 3600 if host == "fw1" else 0
            memory = 8 * 2**30
            free = memory - 2 * 2**30 - leak + rng.normal(0, 2**18)
            forks = at if host == "fw2" or at < 7200 else at - 7200
            now_s = f"{begin_s + at:.3f}"
            lines["node_memory_MemTotal_bytes"].append(f"node_memory_MemTotal_bytes{{{labels}}} {memory} {now_s}")
            lines["node_memory_MemAvailable_bytes"].append(
                f"node_memory_MemAvailable_bytes{{{labels}}} {free:.0f} {now_s}"
            )
            lines["node_forks"].append(f"node_forks_total{{{labels}}} {forks} {now_s}")
            lines["vpp_buffers"].append(f'vpp_buffers{{{labels},pool="a"}} 7 {now_s}')
            for mode, share in (("idle", 0.75), ("user", 0.25)):
                lines["node_cpu_seconds"].append(
                    f'node_cpu_seconds_total{{cpu="0",mode="{mode}",{labels}}} {1000 + share * at} {now_s}'
                )
    return "\n".join(line for some in lines.values() for line in some) + "\n# EOF\n"


_KINDS = {
    "node_memory_MemTotal_bytes": "gauge",
    "node_memory_MemAvailable_bytes": "gauge",
    "node_forks": "counter",
    "node_cpu_seconds": "counter",
    "vpp_buffers": "gauge",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, int]]:
    """A Prometheus with such a night, and the second at which it ended, five hours ago."""
    needs("prometheus", "promtool")
    end_s = (int(time.time()) - 5 * 3600) // STEP_S * STEP_S
    folder = tmp_path_factory.mktemp("prometheus")
    stored(folder, night(end_s))
    with ExitStack() as stack:
        yield start_prometheus(folder, stack), end_s


def test_last_night_is_judged_without_having_polled(server: tuple[Prometheus, int], tmp_path: Path) -> None:
    """One command: hosts are targets, names of node_exporter are known, the leak fails, the hole is polls without an
    answer, the counter starts again, and the end of a series is not repeated."""
    prometheus, end_s = server
    runs = tmp_path / "runs"
    came = command_here(tmp_path, merged=True)(
        *("import", "--prometheus", prometheus.url, "--from", str(end_s - HOURS * 3600), "--to", str(end_s)),
        *("--name", "night", "--runs", str(runs), "--rule", "memory_growth"),
    )
    assert came.returncode == 0, came.stdout
    assert "fw1" in came.stdout
    assert "verdict fail" in came.stdout, came.stdout
    (folder,) = runs.glob("*night*")
    begin_ns = (end_s - HOURS * 3600) * 10**9
    with RecordView.open(folder) as view:
        used = view.series(SeriesKey("fw1", "system.memory.usage", ""))
        busy = view.series(SeriesKey("fw1", "system.cpu.utilization", ""))
        forks = view.series(SeriesKey("fw1", "system.processes.created", ""))
        other = view.series(SeriesKey("fw2", "system.memory.usage", ""))
    hole = (used.time_ns > begin_ns + 3600 * 10**9) & (used.time_ns < begin_ns + 4200 * 10**9)
    assert not hole.any()
    assert len(used.time_ns) == HOURS * 240 + 1 - 40
    assert np.allclose(busy.value, 0.25, atol=1e-6)
    assert forks.value.dtype == np.int64
    assert (np.diff(forks.value) < 0).sum() == 1
    assert other.time_ns[-1] == begin_ns + 3 * 3600 * 10**9
    assert (folder / "report.html").exists()


def test_queries_expressions_and_names_of_ones_own(server: tuple[Prometheus, int], tmp_path: Path) -> None:
    """A selector chooses a host, an expression is evaluated at each step and is empty in the hole, ``--map`` and
    ``--keep`` take names that nobody knows."""
    prometheus, end_s = server
    given = {
        "prometheus": prometheus.url,
        "begin": str(end_s - HOURS * 3600),
        "end": str(end_s),
        "queries": ('{instance="fw1:9100"}', 'all_free=sum(node_memory_MemAvailable_bytes{instance="fw2:9100"})'),
        "step": "15s",
        "keep": ("all_*",),
        "meanings": ("vpp_buffers=queue.depth,queue={pool}",),
        "target": "box",
    }
    imported = import_prometheus(tmp_path / "record", "box", given, (), lambda _: None)
    by_name = {(series.metric, series.object): series for series in imported.series}
    assert {series.target for series in imported.series} == {"box"}
    assert by_name["queue.depth", "queue=a"].value.tolist()[:2] == [7, 7]
    free = by_name["exporter.gauge", "name=all_free,labels="]
    since_s = free.time_ns * 1e-9 - (end_s - HOURS * 3600)
    assert not ((since_s > 3600 + STEP_S) & (since_s < 4200)).any()
    assert since_s.max() <= 3 * 3600 + STEP_S  # not five minutes longer
    assert math.isclose(float(np.median(np.diff(free.time_ns))), STEP_S * 1e9)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "yesterday"), "--from yesterday is not a time"),
        ((), "--from is missing"),
        (("--from", "1h", "--to", "2h"), "--to is not after --from"),
        (("--from", "1h", "--query", "n=sum(up)"), "--step is missing"),
        (("--from", "1h", "--unit", "a=KB"), "--unit: only for tables"),
        (("--from", "1h", "--token", "geheim"), "env:NAME"),
        (("--from", "1h", "--header", "X-Scope-OrgID=geheim"), "--header: "),
        (("--from", "1h", "--map", "x=no.metric"), "unknown metric 'no.metric'"),
        (("--from", "30m"), "has no sample of"),
    ],
)
def test_mistakes_have_a_remedy(
    server: tuple[Prometheus, int], tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    """Each in a sentence, nothing is left behind, and no secret is repeated."""
    came = command_here(tmp_path, merged=True)("import", "--prometheus", server[0].url, "--runs", str(tmp_path), *words)
    assert came.returncode != 0
    assert sentence in " ".join(came.stdout.split()), came.stdout
    assert "geheim" not in came.stdout
    assert not list(tmp_path.glob("*/record.sqlite"))


def test_options_without_a_server(tmp_path: Path) -> None:
    """They are refused by their names; so is nothing at all, and a server that is none."""
    here = command_here(tmp_path, merged=True)
    came = here("import", "x.csv", "--query", "up", "--from", "1h", "--runs", str(tmp_path))
    assert "--from, --query: only with --prometheus URL" in " ".join(came.stdout.split())
    assert "name a table" in " ".join(here("import").stdout.split())
    with pytest.raises(DataError, match=r"cannot be reached|refuses"):
        import_prometheus(tmp_path / "r", "n", {"prometheus": "http://127.0.0.1:1", "begin": "1h"}, (), lambda _: None)
