"""``soakwatch check`` on a terminal of 80 columns: what stays on the screen, and a pipe that gets all of it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.collector.cli.terminals import Terminal
from tests.commands import command_in

PLAN = """\
name: short
phases: [{soak: 1m}]
targets: {host: {role: dut, sources: [{local: {interval: 1s}}]}}
watch: {processes: [no-such-process-anywhere]}
"""


def test_the_last_lines_are_the_verdict_the_reason_and_what_to_do(tmp_path: Path) -> None:
    """Of a source with many metrics twelve are shown; what is wrong stands at the end once more, with the remedy."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    terminal = Terminal(("check", "plan.yaml"), 80, 24, tmp_path, {})
    try:
        assert terminal.end() == 1
        written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.raw.decode())
        lines = [line.rstrip() for line in written.splitlines() if line.strip()]
    finally:
        terminal.close()
    assert [line for line in lines if len(line) > 80] == []
    assert any("more metrics: --verbose lists them" in line for line in lines)
    assert lines[-1] == "next: mend that, and check again"
    assert "no process 'no-such-process-anywhere'" in " ".join(" ".join(lines[-4:-1]).split())
    assert any(line.startswith("not ready: 1 source, 1 problem") for line in lines[-6:-1])


def test_a_pipe_gets_every_metric(tmp_path: Path) -> None:
    """Who reads it with a program misses nothing; values have their units, and shares are in percent."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    told = command_in(tmp_path)("check", "plan.yaml").stdout
    assert "--verbose lists them" not in told
    assert "system.memory.committed" in told
    assert " GiB" in told
