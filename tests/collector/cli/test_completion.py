"""TAB in real shells: commands, plan files, runs and rules are completed, and nothing that is none of them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, environment
from tests.needs import needs

from soakwatch_testing.records import judged_run

SETTING_UP = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D -u; unset zle_bracketed_paste; unsetopt prompt_sp"),
}
TYPED = {
    "run pla": "run plan.yaml",
    "report 20231114": "report 20231114T221320Z-overnight",
    "report runs/20231115": "report runs/20231115T221320Z-overnight",
    "rules memory_g": "rules memory_growth",
    "judge last --rule memory_g": "judge last --rule memory_growth",
    "campaign run over": "campaign run overload.yaml",
    "profiles juniper-m": "profiles juniper-mss",
    "completi": "completion",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan, a campaign, a YAML file that is neither, and two runs."""
    (tmp_path / "plan.yaml").write_text("name: x\ntargets: {}\n")
    (tmp_path / "overload.yaml").write_text("plan: plan.yaml\nmatrix: {}\n")
    (tmp_path / "playbook.yaml").write_text("- hosts: all\n")
    (tmp_path / "plots").mkdir()
    for day in (14, 15):
        run = judged_run(tmp_path / "runs" / f"202311{day}T221320Z-overnight", packets_per_s=1e6)
        (run / "verdict.json").write_text('{"verdict": "pass"}')
    return tmp_path


class Shell:
    """A shell on a terminal."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        path = f"{Path(SOAKWATCH).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {**environment(), "PATH": path, "TERM": "dumb", "PS1": "READY> ", "COLUMNS": "200"}
        self.process = subprocess.Popen(
            words, cwd=folder, env=variables, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def type(self, text: str, until: str) -> str:
        """What is written after ``text`` was typed, up to ``until``."""
        os.write(self._ours, text.encode())
        written, deadline = "", time.monotonic() + MAX_WAIT_S
        while until not in written:
            assert time.monotonic() < deadline, f"no {until!r} after {text!r}: {written!r}"
            if select.select([self._ours], [], [], 0.2)[0]:
                written += os.read(self._ours, 1 << 16).decode(errors="replace").replace("\r", "")
        return written

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture(params=["bash", pytest.param("zsh", marks=pytest.mark.slow)])
def shell(request: pytest.FixtureRequest, folder: Path) -> Iterator[Shell]:
    """A shell that has read what ``soakwatch completion`` prints for it."""
    name = str(request.param)
    needs(name)
    words, setting_up = SETTING_UP[name]
    running = Shell(words, folder)
    try:
        running.type(f'{setting_up}; eval "$(soakwatch completion {name})"; echo se""t up\n', "set up")
        yield running
    finally:
        running.close()


def test_tab_completes(shell: Shell) -> None:
    """What is typed as far as it is unique is written out by TAB; Ctrl-U then takes the line away."""
    tried = TYPED if "bash" in str(shell.process.args) else dict(list(TYPED.items())[:4])
    for typed, whole in tried.items():
        rest = whole.removeprefix(typed)
        shell.type(f"soakwatch {typed}\t", rest)
        shell.type("\x15echo do''ne\n", "done\n")


@pytest.mark.slow
def test_fish_shows_what_each_is(folder: Path) -> None:
    """Runs stand there with their verdict, rules with what they find; a file that is no plan is not offered."""
    needs("fish")
    path = f"{Path(SOAKWATCH).parent}{os.pathsep}{os.environ['PATH']}"

    def offered(line: str) -> list[str]:
        ask = f"soakwatch completion fish | source; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", ask],
            cwd=folder,
            env={**environment(), "PATH": path, "HOME": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    assert [line.partition("\t")[0] for line in offered("soakwatch run pl")] == ["plan.yaml", "plots/"]
    assert offered("soakwatch report 2") == [f"202311{day}T221320Z-overnight\tpass" for day in (14, 15)]
    assert [line.partition("\t")[0] for line in offered("soakwatch rules me")] == ["memory_growth"]
