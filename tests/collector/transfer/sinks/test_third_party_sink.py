"""A sink of another distribution: found by folder and by entry point, fed from first sample to verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, PluginFolder, Registry
from soakwatch.plan import plan_from_text
from soakwatch.plan.plan_schema import plan_schema
from soakwatch.transfer.sinks.check import check_sinks
from soakwatch.transfer.sinks.registry import destination, destinations

FOLDERS = Path(__file__).parents[2]
SOAKWATCH = str(Path(sys.executable).with_name("soakwatch"))
ONE_FOLDER = Registry(
    INSTALLED.pollers,
    INSTALLED.loads,
    INSTALLED.rules,
    PluginFolder("plugin_folders.sinks", "sink", holds="class Config(SinkConfig):"),
)
PLAN = "name: fed\nduration: 6s\ntargets: {{dut: {{sources: [local]}}}}\nsinks: [{{lines_file: {{path: '{path}'}}}}]\n"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the folder beside this one importable."""
    monkeypatch.syspath_prepend(str(FOLDERS))
    yield
    for name in [name for name in sys.modules if name.startswith("plugin_folders")]:
        del sys.modules[name]


def test_a_folder_holds_its_sinks_and_what_they_share(tmp_path: Path) -> None:
    """Packages with a Config are sinks, modules are not; the plan takes the keys from there, and so does its schema."""
    assert ONE_FOLDER.sinks.names() == ("lines_file", "no_destination")
    assert ONE_FOLDER.sinks.summary("lines_file") == "Appends lines to a file"
    assert "influxdb" in INSTALLED.sinks.names()
    plan = plan_from_text(PLAN.format(path=tmp_path / "lines"), "p.yaml", ONE_FOLDER)
    named = destinations(plan.sinks, ONE_FOLDER)
    assert {name: to.where for name, to in named.items()} == {"lines_file-1": str(tmp_path / "lines")}
    assert [check.error for check in check_sinks(named.values())] == [None]
    assert "sink.lines_file" in plan_schema(ONE_FOLDER)["$defs"]  # type: ignore[operator]  # plain data


@pytest.mark.parametrize(
    ("sink", "sentence"),
    [
        ("{lines_fil: {path: x}}", "4:9: unknown sink 'lines_fil'; did you mean 'lines_file'?"),
        ("{lines_file: {pth: x}}", "4:23: unknown key 'pth'; did you mean 'path'?"),
        ("[1]", "4:9: a sink is one name with what belongs to it, such as {influxdb: {url: …}}; found a list"),
    ],
)
def test_what_is_wrong_with_a_sink_is_reported_with_its_line(sink: str, sentence: str) -> None:
    text = f"name: fed\nduration: 6s\ntargets: {{dut: {{sources: [local]}}}}\nsinks: [{sink}]\n"
    with pytest.raises(PlanError) as refused:
        plan_from_text(text, "p.yaml", ONE_FOLDER)
    assert f"p.yaml:{sentence}" in refused.value.problems


def test_a_sink_that_breaks_the_convention_is_reported_by_name() -> None:
    text = "name: fed\nduration: 6s\ntargets: {dut: {sources: [local]}}\nsinks: [no_destination]\n"
    (sink,) = plan_from_text(text, "p.yaml", ONE_FOLDER).sinks
    with pytest.raises(PlanError, match="the sink 'no_destination' has no function 'destination': correct plugin_fold"):
        destination(sink, ONE_FOLDER)


@pytest.mark.slow
def test_a_run_feeds_a_sink_of_another_distribution(tmp_path: Path) -> None:
    """Found by its entry point alone: it gets the samples, the polls and the verdict, and the report names it."""
    info = tmp_path / "site" / "other-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[soakwatch.sinks]\nlines_file = plugin_folders.sinks.lines_file\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{FOLDERS}"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [SOAKWATCH, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode in {0, 3}, done.stdout + done.stderr
        return done.stdout + done.stderr

    listed = run("sinks")
    assert "influxdb" in listed
    assert "Appends lines to a file" in listed
    assert "file to append to" in run("sinks", "lines_file")
    lines = tmp_path / "lines"
    (tmp_path / "plan.yaml").write_text(PLAN.format(path=lines))
    shown = run("run", "plan.yaml", "--into", "run", "--no-web")
    assert f"sink    {lines} (" in shown
    text = lines.read_text()
    assert "system.cpu.utilization," in text
    assert "soakwatch_poll," in text
    (verdict,) = {line.partition(" ")[2].partition(",")[0] for line in text.splitlines() if _is_final(line)}
    assert verdict in {'verdict="pass"', 'verdict="inconclusive"'}
    lines.unlink()
    assert "wrote " in run("sink", "run", "--to", "lines_file-1")
    assert "soakwatch_verdict," in lines.read_text()


def _is_final(line: str) -> bool:
    return line.startswith("soakwatch_verdict,") and 'verdict="running"' not in line
