"""The units of systemd: valid, locked up, with commands that exist; and what they rely on when a run is killed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Command, start, wait_until
from tests.needs import needs

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
PAGE = ROOT / "docs" / "services.md"
MOST = 4.0
"""Exposure, of 10, that a unit may have."""
PLAN = """\
name: fw
duration: {seconds}s
targets: {{dut: {{sources: [{{local: {{interval: 1s, probes: [cpu]}}}}]}}}}
"""


def drop_ins() -> dict[str, str]:
    """The drop-ins of the page, by name."""
    blocks = re.findall(r"```ini\n# /etc/systemd/system/\S+/(\S+)\.conf\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(blocks)


def installed(unit: Path, folder: Path, drop_in: str = "") -> Path:
    """A unit in a folder, with the programs of this checkout."""
    file = folder / unit.name
    text = unit.read_text("utf-8").replace("/usr/bin/soakwatch", str(SOAKWATCH.parent / "soakwatch"))
    file.write_text(f"{text}\n{drop_in}", encoding="utf-8")
    return file


def _exposure(file: Path) -> float:
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found, said
    return float(found[1])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_valid_and_locked_up(unit: Path, tmp_path: Path) -> None:
    needs("systemd-analyze")
    file = installed(unit, tmp_path)
    named = file.with_name(file.name.replace("@.", "@fw."))
    if named != file:
        named.symlink_to(file)
    checked = subprocess.run(["systemd-analyze", "verify", str(named)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert _exposure(file) <= MOST


@pytest.mark.parametrize("name", sorted(drop_ins()))
def test_a_run_with_a_right_more_is_still_locked_up(name: str, tmp_path: Path) -> None:
    needs("systemd-analyze")
    unit = ROOT / "deploy" / "systemd" / "soakwatch-run@.service"
    bare, more = _exposure(installed(unit, tmp_path)), _exposure(installed(unit, tmp_path, drop_ins()[name]))
    assert bare <= more <= MOST


def test_user_and_folders_are_made_by_systemd(tmp_path: Path) -> None:
    needs("systemd-sysusers", "systemd-tmpfiles")
    (tmp_path / "etc").mkdir()
    for kind in ("sysusers", "tmpfiles"):
        place = tmp_path / "usr" / "lib" / f"{kind}.d"
        place.mkdir(parents=True)
        (place / "soakwatch.conf").write_text((ROOT / "deploy" / "systemd" / f"soakwatch.{kind}").read_text("utf-8"))
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}"], check=True, capture_output=True)
    assert "soakwatch:x:" in (tmp_path / "etc" / "passwd").read_text("utf-8")
    if os.getuid() == 0:  # they belong to another user
        subprocess.run(["systemd-tmpfiles", "--create", f"--root={tmp_path}"], check=True, capture_output=True)
        assert (tmp_path / "var" / "lib" / "soakwatch" / "going").is_dir()


def _commands(unit: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a unit by their keys, as systemd splits them."""
    for line in (ROOT / "deploy" / "systemd" / unit).read_text("utf-8").splitlines():
        key, equals, command = line.partition("=")
        if equals and key.startswith("Exec"):
            yield key, [word.replace("$$", "$") for word in shlex.split(command.replace("%i", "fw"))]


@pytest.mark.parametrize(("status", "kept"), [("0", False), ("1", False), ("3", False), ("4", True), ("KILL", True)])
def test_the_mark_of_a_run_goes_with_its_verdict_only(status: str, kept: bool, tmp_path: Path) -> None:
    commands = dict(_commands("soakwatch-run@.service"))
    mark = tmp_path / "fw"
    for key in ("ExecStartPre", "ExecStopPost"):
        words = [word.replace("/var/lib/soakwatch/going", str(tmp_path)) for word in commands[key]]
        subprocess.run(words, check=True, env={**os.environ, "EXIT_STATUS": status})
        if key == "ExecStartPre":
            assert mark.is_file()
    assert mark.is_file() is kept


def test_after_a_boot_each_marked_run_is_started(tmp_path: Path) -> None:
    """Also with a name that a shell would take apart; nothing is started where nothing went on."""
    (words,) = (words for _, words in _commands("soakwatch-resume.service"))
    going, told = tmp_path / "going", tmp_path / "told"
    going.mkdir()
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{told}\n', encoding="utf-8")
    (tmp_path / "systemctl").chmod(0o755)
    command = [word.replace("/var/lib/soakwatch/going", str(going)) for word in words]
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(command, check=True, env=path)
    assert not told.exists()
    for name in ("fw", "a b;c"):
        (going / name).touch()
    subprocess.run(command, check=True, env=path)
    expected = [f"start --no-block soakwatch-run@{name}.service" for name in ("a b;c", "fw")]
    assert sorted(told.read_text("utf-8").splitlines()) == sorted(expected)


def _polls(run: Path) -> int:
    try:
        with RecordView.open(run) as view:
            return len(view.polls_after("", 5000)[0])
    except RecordError:
        return 0


@pytest.mark.slow
def test_the_command_of_the_unit_resumes_a_killed_run_and_then_begins_another(
    tmp_path: Path, soakwatch: Command
) -> None:
    """Killed with -9 twice, started again as systemd does: one run with two gaps, and the code of its verdict. A
    stop (SIGTERM) is judged. The next start is a new run."""
    plans, runs = tmp_path / "plans", tmp_path / "runs"
    plans.mkdir()
    (plans / "fw.yaml").write_text(PLAN.format(seconds=3600), encoding="utf-8")
    command = dict(_commands("soakwatch-run@.service"))["ExecStart"]
    places = {"/etc/soakwatch/plans/fw.yaml": str(plans / "fw.yaml"), "/var/lib/soakwatch/runs": str(runs)}
    words = [places.get(word, word) for word in command[1:] if not word.startswith("$")]
    at = words.index("--group")
    del words[at : at + 2]  # this machine has no such group
    seen = 0
    for life in ("begun", "resumed", "resumed again"):
        process = start(words, tmp_path, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: _polls(_only(runs)) > seen or process.poll() is not None, life)  # noqa: B023
            assert process.poll() is None
            seen = _polls(_only(runs)) + 3
            wait_until(lambda: _polls(_only(runs)) > seen, "more polls")  # noqa: B023
            process.send_signal(signal.SIGTERM if life == "resumed again" else signal.SIGKILL)
            said = process.communicate(timeout=240)[0]
        finally:
            process.kill()
            process.wait()
    assert "was cut off: it is resumed, and no new run begins" in said
    assert process.returncode in {0, 1, 3}
    run = _only(runs)
    assert (run / "report.html").is_file()
    with RecordView.open(run) as view:
        assert sum(stored.event.kind == "gap" for stored in view.events()) == 2
    (plans / "fw.yaml").write_text(PLAN.format(seconds=2), encoding="utf-8")
    done = soakwatch(*words)
    assert done.returncode in {0, 1, 3}
    assert "cut off" not in done.stdout + done.stderr
    assert len(list(runs.iterdir())) == 2


def _only(runs: Path) -> Path:
    found = [path.parent for path in runs.glob("*/record.sqlite")]
    return found[0] if found else runs / "none"


def test_resume_unfinished_needs_a_plan_and_check_says_what_is_left(tmp_path: Path, soakwatch: Command) -> None:
    refused = soakwatch("run", "--resume-unfinished", "--target", "local")
    assert refused.returncode == 2
    assert "--resume-unfinished needs a plan" in refused.stderr
    gone = soakwatch("resume", "nothing", "--check")
    assert gone.returncode == 2
