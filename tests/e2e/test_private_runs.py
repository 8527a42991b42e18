"""Every command that makes a run makes it private, whatever the umask, or shares it with the group that is named."""

from __future__ import annotations

import grp
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

OWN_GROUP = grp.getgrgid(os.getegid()).gr_name


def soakwatch(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command line under a umask that hides nothing."""
    program = [sys.executable, "-m", "soakwatch.cli", *map(str, words)]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, timeout=300, check=False, umask=0)


def open_to_others(folder: Path) -> dict[str, str]:
    """What lies in a folder, and itself, that others than owner and group may use, or the group may write."""
    return {
        str(path.relative_to(folder)): oct(mode)
        for path in [folder, *folder.rglob("*")]
        if (mode := stat.S_IMODE(path.stat().st_mode)) & 0o027
    }


def test_a_run_is_private_and_its_files_too(tmp_path: Path) -> None:
    """Record, log of a campaign, reports, verdict and lock: nothing is open to others, or to the group."""
    done = soakwatch("run", "--target", "local", "--duration", "3s", "--no-web", "--into", "night", cwd=tmp_path)
    assert done.returncode in {0, 3}, done.stderr
    folder = tmp_path / "night"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert {"record.sqlite", "record.lock", "report.html", "report.md", "verdict.json", "junit.xml"} <= {
        path.name for path in folder.iterdir()
    }


def test_an_import_is_private_or_the_groups(tmp_path: Path) -> None:
    """An imported table likewise; with --group the group reads all but the lock, and an unknown group is refused."""
    rows = "".join(f"{1_790_000_000 + second},dut,cpu,,0.2\n" for second in range(30))
    (tmp_path / "night.csv").write_text(f"time,target,metric,object,value\n{rows}", encoding="utf-8")
    done = soakwatch("import", "night.csv", "--group", OWN_GROUP, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2750
    assert stat.S_IMODE((folder / "record.sqlite").stat().st_mode) == 0o640
    assert stat.S_IMODE((folder / "record.lock").stat().st_mode) == 0o600
    refused = soakwatch("import", "night.csv", "--group", "no-such-group", cwd=tmp_path)
    assert refused.returncode == 2
    assert "there is no group 'no-such-group' on this machine" in refused.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.slow
def test_a_campaign_and_its_runs_are_the_groups(tmp_path: Path) -> None:
    """The folder of a campaign, its ledger and logs, and its runs are shared with the group, and with nobody else."""
    (tmp_path / "plan.yaml").write_text(
        "name: small\nduration: 3s\ntargets: {dut: {role: dut, sources: [{local: {}}]}}\n", encoding="utf-8"
    )
    (tmp_path / "campaign.yaml").write_text(
        "name: small\nplan: plan.yaml\nmatrix: {length: {set: duration, values: [4s]}}\nrepeat: 1\n", encoding="utf-8"
    )
    done = soakwatch("campaign", "run", "campaign.yaml", "--group", OWN_GROUP, cwd=tmp_path)
    assert done.returncode in {0, 3}, done.stderr
    folder = tmp_path / "campaigns" / "small"
    assert open_to_others(folder) == {}
    (run,) = (folder / "runs").iterdir()
    assert {stat.S_IMODE(place.stat().st_mode) for place in (folder, folder / "runs", run)} == {0o2750}
    private = {path.name for path in folder.rglob("*") if path.is_file() and not path.stat().st_mode & stat.S_IRGRP}
    assert all(name.endswith(".lock") for name in private), private
