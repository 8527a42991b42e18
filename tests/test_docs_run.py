"""Blocks of the documentation are used as they stand: plans are read, commands that need no gear are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, environment
from tests.doc_blocks import blocks_of

from soakwatch.core.yaml import Plain, dump, parse
from soakwatch.plan import plan_from_text
from soakwatch.plan.plan_model import PlanKeys
from soakwatch.sources.profiles.loading import load_profiles, platform
from soakwatch_testing.records import SECOND, T0, judged_run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FRAME = """
phases: [{soak: 20h}, {stress: 4h}]
targets:
  fw: {sources: [snmp: {host: 10.0.0.1}]}
  dut: {sources: [snmp: {host: 10.0.0.2}]}
  tg: {role: generator, sources: [trex: {host: 10.0.0.9, drive: true, rate: 10mpps}]}
"""
"""What a block leaves out that shows a part of a plan."""
OTHERWISE = {
    "demo": "has a test of its own",
    "run": "tests of runs, and of the tutorial",
    "campaign": "tests of campaigns run every example",
    "calibrate": "drives generators",
    "probe": "asks gear",
    "agent": "installs on a host",
    "serve": "does not end",
    "open": "opens a browser",
    "watch": "of a run that goes on",
    "stop": "of a run that goes on",
    "event": "of a run that goes on",
    "sink": "asks a database",
    **dict.fromkeys(("submit", "queue", "token"), "asks a lab server"),
    "check": "asks gear; the tutorial checks its plan",
    "notify": "sends mail",
    "init": "asks on a terminal",
}
"""Commands that are not run here, and why."""
_ASKS = re.compile(r"--prometheus|dask://|tls://|influxdb://|drill plan\.yaml|new:fw-b=fw-a")
_MAX_S = 300


_TOLD_BY = {*PlanKeys.model_fields, "defaults"} - {"name"}
"""Keys of which a block has one if it is of a plan, and not of CI or of Kubernetes."""


def _plans() -> list[tuple[str, dict[str, Plain]]]:
    shown = []
    for page in PAGES:
        for text in blocks_of(page.read_text(encoding="utf-8"), "yaml"):
            data = parse(text, page.name).data
            if isinstance(data, dict) and data.keys() & _TOLD_BY:
                shown.append((page.stem, data))
    return shown


@pytest.mark.parametrize(("page", "keys"), _plans(), ids=lambda part: part if isinstance(part, str) else "-".join(part))
def test_every_plan_that_is_shown_is_accepted(page: str, keys: dict[str, Plain]) -> None:
    """A whole plan, or a part of one with what it leaves out; files of campaigns are read by their own tests."""
    if keys.keys() & {"matrix", "figures"}:
        pytest.skip("the file of a campaign")
    frame = parse(_FRAME, page).data
    assert isinstance(frame, dict)
    if "duration" in keys:
        del frame["phases"]
    plan = plan_from_text(dump({**frame, **keys}), page)
    assert plan.duration_s > 0
    for config in (source.config for target in plan.targets for source in target.sources):
        name = getattr(config, "os", None) or "auto"
        assert name in {"auto", "linux"} or platform(name).commands
        assert getattr(config, "profile", None) in {None, "auto", *load_profiles(None)}


def _lines() -> list[tuple[str, str]]:
    """Each command of a block that is run here, with its page."""
    lines = []
    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8"), "sh"):
            for line in block.splitlines():
                command = re.sub(r"\s{2,}#.*", "", line)
                word = command.split()[1] if command.startswith("soakwatch ") else ""
                if word and word not in OTHERWISE and not _ASKS.search(command) and page.stem != "first-service":
                    lines.append((page.stem, command))
    return lines


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the pages take it for granted: a finished run, earlier ones by the names that they use, tables."""
    folder = tmp_path_factory.mktemp("docs")
    for day, name in enumerate(["fw-7.1", "fw-7.2", "RUN", "old", "night-1", "night-2", "new"]):
        place = folder / "runs" / f"202611{14 + day}T200000Z-{name}"
        release = "7.1" if name == "fw-7.1" else "7.2"
        judged_run(place, packets_per_s=1e6, begin_ns=T0 + day * 86400 * SECOND, release=release, seed=day)
    shutil.copytree(folder / "runs", folder / "campaigns" / "releases")
    target = "{sources: [local: {interval: 500ms}], watch: {processes: [bash]}}"
    plan = f"name: overnight\nduration: 6s\ntargets: {{fw: {target}}}\n"
    (folder / "plan.yaml").write_text(plan)
    (folder / "stricter.yaml").write_text(f"{plan}rules: {{memory_growth: {{tolerance: 1%}}}}\n")
    minutes = [f"2026-11-20T20:{minute:02d}:00Z" for minute in range(60)]
    heads = {"data": "rss,cpu", "host": "rss,cpu", "memory": "system.memory.usage,other"}
    for name, head in heads.items():
        rows = [f"{at},{1e6 + i},{30 + i % 3}" for i, at in enumerate(minutes)]
        (folder / f"{name}.csv").write_text("\n".join([f"time,{head}", *rows]) + "\n")
    series = ("fw,system.memory.usage,,1e9", "gen,load.request.rate,,100")
    rows = [f"{at},{one}" for at in minutes for one in series]
    (folder / "night.csv").write_text("\n".join(["time,target,metric,object,value", *rows]) + "\n")
    (folder / "changes.csv").write_text(f"kind,begin\nupgrade,{minutes[40]}\n")
    added = subprocess.run([SOAKWATCH, "archive", "add", "runs"], cwd=folder, env=environment(), check=False)
    assert added.returncode == 0
    subprocess.run([SOAKWATCH, "run", "plan.yaml"], cwd=folder, env=environment(), capture_output=True, check=False)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("page", "line"), _lines(), ids=lambda part: part)
def test_every_command_that_needs_no_gear_is_run(page: str, line: str, workplace: Path, tmp_path: Path) -> None:
    """It ends with a verdict or is done: never with a mistake in the command line, never broken."""
    here = tmp_path / "here"
    shutil.copytree(workplace, here)
    for made in re.findall(r"--output (\S+)", line):
        (here / made).unlink(missing_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = {**environment(), "PATH": path, "HOME": str(tmp_path), "PAGER": "cat"}
    for folder in (".local/share/bash-completion/completions", ".config/fish/completions", ".zfunc"):
        (tmp_path / folder).mkdir(parents=True)
    done = subprocess.run(
        ["bash", "-c", line], cwd=here, env=home, capture_output=True, text=True, check=False, timeout=_MAX_S
    )
    assert done.returncode in {0, 1, 3}, f"{page}: {line}\n{done.stdout[-2000:]}{done.stderr}"
