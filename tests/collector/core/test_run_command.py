"""Commands of someone's own: how they end is reported, and nothing of them outlives its time."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.commands import MAX_WAIT_S, wait_until

from soakwatch.core.redaction import Redaction, redaction_of
from soakwatch.core.run_command import MAX_OUTPUT, BoundedOutput, CommandResult, run_command
from soakwatch.core.units import show_seconds


def run(
    words: list[str], timeout_s: float = MAX_WAIT_S, over_when: Path | None = None, **environment: str
) -> CommandResult:
    """One command to its end; the run is over when a file is there."""

    async def main() -> CommandResult:
        over = asyncio.Event()

        def look() -> None:
            if over_when is not None and over_when.exists():
                over.set()
            asyncio.get_running_loop().call_later(0.05, look)

        look()
        return await run_command(words, environment, timeout_s, over, Redaction(["env:DUT_PASSWORD"]))

    return asyncio.run(main())


def gone(file: Path) -> bool:
    """Whether the process whose number is in a file is gone, sooner or later; the file is gone then as well."""
    number = int(file.read_text())
    file.unlink()
    wait_until(
        lambda: not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE,
        f"the end of process {number}",
    )
    return True


def test_what_a_command_printed_and_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams are kept as they came; exit code and last words of stderr are the failure; no secret is in them."""
    monkeypatch.setenv("DUT_PASSWORD", "hunter22")
    result = run(["sh", "-c", "echo one $WHO; echo login hunter22 refused >&2; exit 3"], WHO="me")
    assert result.failure == "exit code 3: login *** refused"
    assert sorted(result.output.split(b"\n")) == [b"", b"login *** refused", b"one me"]
    assert run(["true"]) == CommandResult("", b"", run(["true"]).seconds) or run(["true"]).failure == ""
    assert run(["sh", "-c", "kill -9 $$"]).failure == "ended by SIGKILL"
    assert run(["/no/such/program"]).failure == "cannot start /no/such/program: No such file or directory"
    assert "its arguments contain" in run(["echo", "a\0b"]).failure


def test_a_command_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """After its time, or the run's, the whole process group is gone, also children that ignore the polite signal."""
    child, words = tmp_path / "child", "trap '' TERM; echo $BASHPID > {0}.new; mv {0}.new {0}; sleep 600"
    script = f"trap '' TERM; echo begun; ({words.format(child)}) & wait"
    for timeout_s in (1, 5, 25, 125):  # a busy machine may need longer to begin
        result = run(["bash", "-c", script], timeout_s=timeout_s)
        if child.exists():
            break
    assert result.failure == f"it was killed: it did not end within {show_seconds(timeout_s)}"
    assert not result.over
    assert result.output == b"begun\n"
    assert gone(child)
    result = run(["bash", "-c", script], over_when=child)
    assert result.failure == "it was killed: the run was over"
    assert result.over
    assert gone(child)


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A command that ends at once is not waited for because of a child that keeps its output open; the child ends."""
    result = run(["bash", "-c", f"sleep 600 & echo $! > {tmp_path}/child; echo done"])
    assert (result.failure, result.output) == ("", b"done\n")
    assert gone(tmp_path / "child")


def test_output_is_bounded_and_says_what_is_left_out() -> None:
    """Of a chatty command the begin and the end are kept, in whole lines, and the bytes between are counted."""
    result = run([sys.executable, "-c", "for i in range(200000): print('line', i)"])
    assert result.failure == ""
    assert len(result.output) < MAX_OUTPUT + 100
    lines = result.output.decode().splitlines()
    assert (lines[0], lines[-1]) == ("line 0", "line 199999")
    (gap,) = [line for line in lines if "omitted" in line]
    whole = sum(len(f"line {i}\n") for i in range(200_000))
    assert int(gap.split()[1]) == whole - (len(result.output) - len(f"\n{gap}\n".encode()))


def test_a_command_ends_with_the_process_that_runs_it(tmp_path: Path) -> None:
    """That is killed with kill -9: neither the command nor what it started is left."""
    pid = tmp_path / "pid"
    script = f"(trap '' TERM; echo $BASHPID > {pid}.new; mv {pid}.new {pid}; while :; do sleep 0.2; done) & wait"
    code = (
        "import asyncio\nfrom soakwatch.core.redaction import Redaction\n"
        "from soakwatch.core.run_command import run_command\n"
        f"asyncio.run(run_command(['bash', '-c', {script!r}], {{}}, 600, asyncio.Event(), Redaction()))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as runner:
        wait_until(pid.exists, "the start of the command")
        runner.kill()
    assert gone(pid)


def test_hearing_never_keeps_more_than_it_may() -> None:
    """Whatever the pieces in which output comes: no more than the bound is kept, and short output is kept whole."""
    chance = random.Random(3)
    for _ in range(50):
        heard, expected = BoundedOutput(1000), b""
        for _ in range(chance.randrange(60)):
            piece = chance.randbytes(chance.randrange(120))
            expected += piece
            heard.take(piece)
        assert heard.bytes() == expected if len(expected) <= 1000 else len(heard.bytes()) < 1100


def test_every_secret_of_a_plan_is_taken_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """References anywhere in a plan count: variables and files, as they are and escaped; a file keeps its length."""
    monkeypatch.setenv("ONE", "first/secret")
    monkeypatch.delenv("GONE", raising=False)
    (tmp_path / "two").write_text("two\nlines here\n")
    redaction = redaction_of(
        f"targets: {{dut: {{sources: [{{ssh: {{password: env:ONE, key: 'file:{tmp_path}/two', x: env:GONE}}}}]}}}}"
    )
    output = b"a first/secret b first%2Fsecret c two\nlines here d two\\nlines here"
    assert redaction.output(output) == b"a *** b *** c *** d ***"
    assert redaction.file(b"\0first/secret\1") == b"\0************\1"
    assert redaction.text("first/secret") == "***"
