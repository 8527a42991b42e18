"""Manual pages: one for every command, which man renders without a complaint, with its options and examples."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.commands import SOAKWATCH
from tests.needs import needs

from soakwatch.cli.main import COMMANDS


def _man(page: Path) -> str:
    shown = ["man", "--warnings=all", "--local-file", str(page)]
    environment = {"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MANROFFSEQ": ""}
    done = subprocess.run(shown, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == "", page.name
    return re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)


def test_every_command_has_a_page_that_man_renders(tmp_path: Path) -> None:
    """``soakwatch man --to DIR`` writes them; what ``--help`` says is there, and nothing of it is lost as a macro."""
    needs("man", "groff")
    subprocess.run([SOAKWATCH, "man", "--to", tmp_path], check=True, capture_output=True)
    names = {file.stem for file in tmp_path.glob("*.1")}
    assert names >= {"soakwatch", "soakwatch-campaign-run", *(f"soakwatch-{name}" for name in COMMANDS.names())}
    shown = {name: _man(tmp_path / f"{name}.1") for name in ("soakwatch", "soakwatch-run", "soakwatch-campaign-report")}
    assert "soakwatch-run(1)" in shown["soakwatch"]
    run = shown["soakwatch-run"]
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
        assert f"\n{section}\n" in run, run
    for word in ("--label NAME=VALUE", "--stop-on-fail", "soakwatch run plan.yaml", "3 inconclusive"):
        assert word in run, run
    for file in tmp_path.glob("*.1"):
        checked = subprocess.run(
            ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", file], capture_output=True, text=True, check=True
        )
        assert checked.stderr == "", file.name


def test_one_page_goes_into_a_pipe() -> None:
    """For ``man -l -``, and for a word that is no command a sentence."""
    page = subprocess.run([SOAKWATCH, "man", "campaign", "run"], capture_output=True, text=True, check=True).stdout
    assert page.startswith('.TH "SOAKWATCH-CAMPAIGN-RUN" 1')
    wrong = subprocess.run([SOAKWATCH, "man", "rnu"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean" in wrong.stderr or "run" in wrong.stderr
