"""Labels that are read when the run starts: from commands of this machine and from packages of a target."""

from __future__ import annotations

import asyncio
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.engine.read_labels import labels_now
from soakwatch.plan import plan_from_text
from soakwatch_testing.sshd import SSHD, Sshd, run_sshd

LOCAL = "{dut: {sources: [local]}}"


def read(folder: Path, labels: str, targets: str = LOCAL) -> dict[str, str]:
    """The texts of some labels, or why they cannot be read, by name."""
    plan = plan_from_text(f"duration: 1h\ntargets: {targets}\nlabels: {labels}\n", "p.yaml")
    return {label.name: text or f"NOT READ: {why}" for label, text, why in asyncio.run(labels_now(plan, folder))}


def program(folder: Path, name: str, script: str) -> None:
    """A program of this name in a folder."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_a_command_gives_its_only_line_or_what_its_pattern_finds(tmp_path: Path) -> None:
    show = "[sh, -c, \"echo IOS; echo '  Version 7.2(1), fc1'\"]"
    assert read(
        tmp_path,
        f"""
  plain: 'a text'
  line: {{command: echo 7.2}}
  group: {{command: {show}, pattern: 'Version (\\S+),'}}
  whole: {{command: {show}, pattern: '\\d[^,]*'}}
  start: {{command: {show}, pattern: '^IOS$'}}
""",
    ) == {"plain": "a text", "line": "7.2", "group": "7.2(1)", "whole": "7.2(1)", "start": "IOS"}


def test_what_cannot_be_read_is_a_sentence_and_never_an_empty_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a command that says a secret: it is taken out."""
    monkeypatch.setenv("DUT_PASSWORD", "hunter2hunter2")
    found = read(
        tmp_path,
        """
  silent: {command: "true"}
  many: {command: [printf, 'a\\nb\\n']}
  failed: {command: [sh, -c, "echo password hunter2hunter2 is wrong >&2; exit 3"]}
  slow: {command: sleep 60, timeout: 200ms}
  missing: {command: [echo, IOS], pattern: "Version (.*)"}
  hollow: {command: [echo, Version], pattern: "Version(.*)"}
  long: {command: [sh, -c, "head -c 300 /dev/zero | tr '\\\\0' x"]}
  secret: {command: [echo, hunter2hunter2]}
""",
    )
    assert found == {
        "silent": "NOT READ: true: it printed nothing",
        "many": "NOT READ: printf 'a\\nb\\n': it printed 2 lines: give a pattern that finds the label in them",
        "failed": "NOT READ: sh -c 'echo password *** is wrong >&2; exit 3': exit code 3: password … is wrong",
        "slow": "NOT READ: sleep 60: it was killed: it did not end within 200 ms",
        "missing": "NOT READ: echo IOS: nothing in its output matches 'Version (.*)'",
        "hollow": "NOT READ: the label hollow has no value: write one, or leave the label out",
        "long": "NOT READ: the label long has 300 characters: 200 at most",
        "secret": "***",
    }


def test_a_package_of_this_machine(tmp_path: Path) -> None:
    """As dpkg knows it; one that is not installed is no label."""
    needs("dpkg-query")
    version = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}", "bash"], capture_output=True, text=True, check=True
    ).stdout
    assert read(tmp_path, "{shell: {package: bash}, none: {package: no-such-package}}") == {
        "shell": version,
        "none": "NOT READ: no-such-package is not installed on dut",
    }


def test_a_package_where_rpm_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """rpm is asked where dpkg-query is not there; what is installed twice has no version of its own."""
    tools = tmp_path / "tools"
    program(tools, "dpkg-query", "echo dpkg-query: not found; exit 127")
    script = """
case "$4" in
  kernel) printf 'installed 6.1-1\\ninstalled 6.2-1\\n' ;;
  nginx) printf 'installed 1.22.1-9.el9\\n' ;;
  *) echo "package $4 is not installed"; exit 1 ;;
esac"""
    program(tools, "rpm", script)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    assert read(tmp_path, "{a: {package: nginx}, b: {package: kernel}, c: {package: vim}}") == {
        "a": "1.22.1-9.el9",
        "b": "NOT READ: kernel on dut: 2 versions are installed: 6.1-1, 6.2-1",
        "c": "NOT READ: vim is not installed on dut",
    }


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A real SSH server on this machine."""
    needs(SSHD, "ssh-keygen")
    with run_sshd(tmp_path / "sshd") as server:
        yield server


def test_a_package_of_a_device_over_its_ssh(sshd: Sshd, tmp_path: Path) -> None:
    """On the target that the label names; where nothing can be run, and where nobody answers, that is said."""
    needs("dpkg-query")
    login = ", ".join(f"{key}: {value!r}" for key, value in sshd.keys.items())
    server = f"{{role: generator, sources: [{{ssh: {{{login}}}}}]}}"
    targets = f"{{fw: {{sources: [{{icmp: {{host: 127.0.0.1}}}}]}}, srv: {server}}}"
    labels = "{shell: {package: bash, target: srv}, none: {package: bash}}"
    found = read(tmp_path, labels, targets)
    assert found["shell"][0].isdigit(), found
    assert found["none"] == "NOT READ: bash on fw: no command can be run there: it has no source ssh, and is elsewhere"
    sshd.close()
    assert "refused the connection" in read(tmp_path, labels, targets)["shell"]
