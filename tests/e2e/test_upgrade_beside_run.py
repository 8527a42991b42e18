"""The package is replaced by another version while a run goes on: the run ends with its verdict and its reports."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest
from tests.commands import environment, wait_until

from soakwatch.record import RecordView

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent/soakwatch_agent", "collector/soakwatch", "collector/soakwatch_model", "rules/soakwatch_rules")
PLAN = """\
name: upgraded
duration: 20s
targets: {dut: {sources: [{local: {interval: 1s, probes: [cpu, memory]}}]}}
hooks: [{on: end, run: [echo, verdict]}]
"""
RENAMED = {"soakwatch.report.terminal": "printed", "soakwatch.judge.adjudicate.order": "sequence"}
"""Modules that the end of a run imports, and what the other version calls them."""


def wheel(folder: Path, version: str, *, renamed: bool = False) -> Path:
    """Builds Soakwatch as it is here with a version number of its own, and with modules that have other names."""
    tree = folder / f"tree-{version}"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tree / "pyproject.toml").write_text(
        re.sub(r'(?m)^version = ".*"', f'version = "{version}"', project, count=1), encoding="utf-8"
    )
    for module, name in RENAMED.items() if renamed else ():
        room, _, old = module.rpartition(".")
        file = tree / "collector" / f"{module.replace('.', '/')}.py"
        file.rename(file.with_name(f"{name}.py"))
        for source in tree.rglob("*.py"):
            text = source.read_text(encoding="utf-8")
            source.write_text(
                text.replace(module, f"{room}.{name}").replace(
                    f"from {room} import {old}\n", f"from {room} import {name}\n"
                ),
                encoding="utf-8",
            )
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(tree)]
    subprocess.run(words, check=True, capture_output=True, env=environment() | {"PYTHONWARNINGS": "ignore"})
    return next(folder.glob(f"soakwatch-{version}-*.whl"))


def without_resume(package: Path, folder: Path) -> Path:
    """The same wheel, whose command resume cannot be imported."""
    broken = folder / "broken" / package.name
    broken.parent.mkdir()
    with zipfile.ZipFile(package) as whole, zipfile.ZipFile(broken, "w") as made:
        for item in whole.infolist():
            data = whole.read(item)
            if item.filename == "soakwatch/cli/commands/resume.py":
                data = b"raise RuntimeError\n"
            if item.filename.endswith("RECORD"):  # pip compares no digests where there are none
                data = b"".join(line.split(b",")[0] + b",,\n" for line in data.splitlines())
            made.writestr(item, data)
    return broken


def environment_of_its_own(folder: Path) -> Path:
    """A venv that sees what Soakwatch needs, and no Soakwatch; returns its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    beside = folder / "beside"
    beside.mkdir()
    for path in Path(pytest.__file__).parents[1].iterdir():
        if not path.name.startswith(("soakwatch", "__editable__", "pip", "_soakwatch")) and path.suffix != ".pth":
            (beside / path.name).symlink_to(path)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(f"{beside}\n", encoding="utf-8")
    return folder / "bin"


def install(programs: Path, package: Path) -> None:
    """Installs a wheel in place of what is there, as a user does."""
    words = [str(programs / "python"), "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", "--no-index"]
    subprocess.run([*words, str(package)], check=True, env=environment() | {"PYTHONWARNINGS": "ignore"})


def _look(run: Path) -> None:
    """Has the page's process started, by looking at the page."""
    url = (run / "web.url").read_text(encoding="ascii").strip()
    with urllib.request.urlopen(f"{url}/api/health", timeout=240) as answer:
        assert answer.status == 200


def _polls(run: Path) -> int:
    with RecordView.open(run) as view:
        return view.counts().polls


def _answered(run: Path) -> bool:
    try:
        with RecordView.open(run) as view:
            return len(view.last_due_ns()) > 1
    except Exception:  # noqa: BLE001 - there is no record yet
        return False


@pytest.mark.slow
@pytest.mark.parametrize("renamed", [False, True], ids=["another-number", "files-renamed"])
def test_a_run_ends_with_verdict_and_reports_although_its_package_was_replaced(tmp_path: Path, renamed: bool) -> None:
    """The process keeps its id and its exit code is the verdict's; the new version made the end, the hook ran once, and
    no poll was missed. A process of the page that is killed meanwhile is started again."""
    before, after = wheel(tmp_path, "0.1.7"), wheel(tmp_path, "0.2.7", renamed=renamed)
    programs = environment_of_its_own(tmp_path / "venv")
    install(programs, before)
    (tmp_path / "p.yaml").write_text(PLAN.replace("20s", "10m"), encoding="utf-8")
    run = tmp_path / "run"
    words = [str(programs / "soakwatch"), "run", "p.yaml", "--into", "run"]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            wait_until(lambda: _answered(run) or process.poll() is not None, "the first polls")
            _look(run)
            install(programs, after)
            page = subprocess.run(
                ["pgrep", "-P", str(process.pid), "-f", "soakwatch.web"], capture_output=True, text=True, check=True
            )
            subprocess.run(["kill", f"-{signal.SIGKILL:d}", *page.stdout.split()], check=True)
            _look(run)
            wait_until(lambda: _polls(run) > 30, "some polls")
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode in {0, 1, 3}, said
    assert "Soakwatch was replaced while this run went on: the new version judges it" in said
    assert "is started again (Soakwatch was replaced" in said
    for name in ("report.html", "report.md", "verdict.json", "junit.xml"):
        assert (run / name).is_file(), name
    with RecordView.open(run) as view:
        metas = view.metas()
        (local,) = [source.id for source in view.sources() if source.target == "dut"]
        polls, _ = view.polls_after("", 5000)
        hooks = [artifact for artifact in view.artifacts() if artifact.name.startswith("hooks/")]
    due = sorted(poll.due_ns for poll in polls if poll.source == local)
    assert len(due) >= 18
    assert {later - sooner for sooner, later in pairwise(due)} == {10**9}
    assert len(hooks) == 1
    assert {0: "pass", 1: "fail", 3: "inconclusive"}[process.returncode] == metas["verdict"]
    shown = subprocess.run(
        [str(programs / "soakwatch"), "verify", "run"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr


@pytest.mark.slow
def test_a_version_that_does_not_start_leaves_the_end_to_the_old_one(tmp_path: Path) -> None:
    """Which ends the run as ever, since what it needs is still there, and says why."""
    before = wheel(tmp_path, "0.1.7")
    programs = environment_of_its_own(tmp_path / "venv")
    install(programs, before)
    (tmp_path / "p.yaml").write_text(PLAN, encoding="utf-8")
    run = tmp_path / "run"
    words = [str(programs / "soakwatch"), "run", "p.yaml", "--into", "run", "--no-web"]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            wait_until(lambda: _answered(run) or process.poll() is not None, "the first polls")
            install(programs, without_resume(before, tmp_path))
            said, _ = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode in {0, 1, 3}, said
    assert "the new version cannot end this run: internal error: RuntimeError" in said
    assert (run / "report.html").is_file()
    with RecordView.open(run) as view:
        assert {0: "pass", 1: "fail", 3: "inconclusive"}[process.returncode] == view.meta("verdict")
        assert [artifact.name for artifact in view.artifacts() if artifact.name.startswith("hooks/")]
