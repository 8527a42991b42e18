"""The commands that read and do not run: as a person or a script calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from tests.commands import command_in

DUT = "targets: {dut: {sources: [local]}}\n"


def soakwatch(
    *args: str, cwd: Path | None = None, check: int | None = None, columns: int = 80
) -> subprocess.CompletedProcess[str]:
    """Runs the command and holds its exit code against ``check``; nothing it says is a traceback."""
    done = command_in(cwd or Path.cwd(), COLUMNS=str(columns))(*args)
    assert "Traceback" not in done.stdout + done.stderr
    if check is not None:
        assert done.returncode == check, done.stdout + done.stderr
    return done


def test_help_lists_every_command_with_its_first_line() -> None:
    """The help names each command, and every command has a help with an example."""
    printed = soakwatch("--help", check=0).stdout
    for name in ("check", "init", "loads", "metrics", "pollers", "rules", "schema"):
        assert f"  {name} " in printed
        page = soakwatch(name, "--help", check=0).stdout
        assert "Examples:" in page
        assert f"soakwatch {name}" in page


def test_version() -> None:
    """The version is one line."""
    assert soakwatch("--version", check=0).stdout.startswith("soakwatch 0.")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["chek"], "unknown command 'chek'; did you mean 'check'? (see 'soakwatch --help')"),
        (["check"], "missing argument 'PLAN' (see 'soakwatch check --help')"),
        (["check", "a", "b"], "got unexpected extra argument (b) (see 'soakwatch check --help')"),
        (["rules", "memory_grow"], "unknown rule 'memory_grow'; did you mean 'memory_growth'?"),
        (["pollers", "locl"], "unknown poller 'locl'; did you mean 'local'?"),
        (["loads", "comand"], "unknown load 'comand'; did you mean 'command'?"),
        (["metrics", "system.memory.usag"], None),
        (["metrics", "zzz*"], "no metric matches 'zzz*'; known here: "),
        (["check", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["init", "-o", "/proc/none/plan.yaml"], "/proc/none/plan.yaml cannot be written: No such file or directory"),
        (
            ["init", "--target", "sssh://a", "-o", "-"],
            "the target 'sssh' names no poller; did",
        ),
        (["probe", "sssh://a"], "the target 'sssh' names no poller; did you mean 'ssh'?"),
        (["probe", "snmp"], "the target 'snmp' names no host: write snmp://HOST"),
        (["profiles", "cisco-as"], "unknown profile 'cisco-as'; did you mean 'cisco-asa'?"),
        (["init", "--duration", "10", "-o", "-"], "command line: duration: '10' is not a duration"),
    ],
)
def test_wrong_use_is_one_sentence(args: list[str], sentence: str | None, tmp_path: Path) -> None:
    """Wrong use is exit 2 with one sentence on stderr and nothing on stdout."""
    done = soakwatch(*args, cwd=tmp_path, check=0 if sentence is None else 2)
    if sentence is not None:
        assert done.stdout == ""
        assert done.stderr.startswith(f"soakwatch: {sentence}")
        assert len(done.stderr.splitlines()) == 1


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """With --debug the sentence comes with the traceback that leads to it."""
    command = [sys.executable, "-m", "soakwatch.cli", "--debug", "check", "none.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("soakwatch: none.yaml: cannot be read")


def test_a_closed_pipe_is_quiet() -> None:
    """A reader that goes away ends the command without a word, and not with the code of a pass or a fail."""
    command = [sys.executable, "-m", "soakwatch.cli", "metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=240) == 141


def test_an_interrupt_is_quiet_and_has_its_own_code(tmp_path: Path) -> None:
    """Ctrl-C in a command that waits (here for the text of a plan in a pipe) ends it with 130 and no traceback."""
    fifo = tmp_path / "plan.yaml"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "soakwatch.cli", "check", str(fifo)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with fifo.open("wb"):  # opens once the command reads
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=240) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    """Output that cannot be written is reported, with the code of a broken monitor."""
    command = [sys.executable, "-m", "soakwatch.cli", "metrics"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
    assert done.returncode == 4
    assert done.stderr.splitlines()[0] == "soakwatch: No space left on device"


def test_catalogues_are_plain_text_that_nothing_cuts_off() -> None:
    """In a pipe, tables are a line a row, whatever the width of the terminal."""
    lines = soakwatch("metrics", "process.*", check=0, columns=20).stdout.splitlines()
    assert lines[0].split() == ["metric", "unit", "kind", "growth", "labels", "meaning"]
    assert any(line.startswith("process.memory.usage  ") and "process,instance" in line for line in lines)
    assert "memory_growth" in soakwatch("rules", check=0).stdout
    assert "local" in soakwatch("pollers", check=0).stdout
    page = soakwatch("pollers", "local", check=0).stdout
    assert any(line.split()[:3] == ["interval", "1s", "duration"] for line in page.splitlines())


def test_a_rule_shows_its_definition_and_parameters() -> None:
    """The page of a rule holds the definition with the defaults, its parameters with units, and its metrics."""
    page = soakwatch("rules", "memory_growth", check=0).stdout
    assert "Definition, with the defaults: " in page
    assert any(line.split()[:3] == ["tolerance", "5%", "1"] for line in page.splitlines())
    assert "process.memory.usage" in page
    assert ">>>" not in page


def test_schemas_are_json_schemas() -> None:
    """Both published schemas are valid JSON Schemas."""
    for what in ("plan", "verdict"):
        schema = json.loads(soakwatch("schema", what, check=0).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)


def test_init_writes_a_plan_that_check_takes(tmp_path: Path) -> None:
    """What init writes is sampled by check, which says what is watched, what that can show, and the disk needed."""
    watch = f"pid:{os.getpid()}"
    soakwatch("init", "--process", watch, "--duration", "10m", cwd=tmp_path, check=0)
    printed = soakwatch("check", "plan.yaml", cwd=tmp_path, check=0).stdout
    assert "process.memory.usage" in printed
    assert "cpu_spike, polls every 1 s: spikes of 11 s and longer are always seen" in printed
    assert "memory_growth, 600 samples in 10 min" in printed
    assert "Disk: about " in printed
    assert not (tmp_path / "runs").exists()


def test_init_does_not_write_over_a_plan(tmp_path: Path) -> None:
    """A file that is there stays as it is, unless --force says otherwise."""
    plan = tmp_path / "plan.yaml"
    plan.write_text("mine\n")
    done = soakwatch("init", "--process", "nginx", cwd=tmp_path, check=2)
    assert done.stderr == ("soakwatch: plan.yaml exists: choose another file with -o, or overwrite it with --force\n")
    assert plan.read_text() == "mine\n"
    soakwatch("init", "--process", "nginx", "--force", cwd=tmp_path, check=0)
    assert "nginx" in plan.read_text()


def test_check_tells_every_problem_of_a_plan(tmp_path: Path) -> None:
    """A bad plan is exit 2 with one line a problem, in the order of the file."""
    (tmp_path / "plan.yaml").write_text(
        "durtion: 1h\ntargets:\n  dut:\n    sources:\n      - local: {intervall: 1s}\n      - lokal:\n"
    )
    done = soakwatch("check", "plan.yaml", cwd=tmp_path, check=2)
    assert done.stderr.splitlines() == [
        "soakwatch: plan.yaml:1:1: unknown key 'durtion'; did you mean 'duration'?",
        "soakwatch: plan.yaml:5:17: unknown key 'intervall'; did you mean 'interval'?",
        "soakwatch: plan.yaml:6:9: unknown source 'lokal'; did you mean 'local'?",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "plan.yaml: is empty: 'soakwatch init' writes a plan to start from"),
        (b"a:\n\tb: 1\n", "plan.yaml:2:1: a tab cannot indent or separate here: use spaces"),
        (b"name: \xff\n", "plan.yaml:1:7: is not UTF-8: save the plan as UTF-8"),
        (
            b"duration: 1h\nduration: 2h\n",
            "plan.yaml:2:1: the key 'duration' is given twice (first in line 1): remove one",
        ),
        (
            b"phases: [{soak: 1h}]\nduration: 2h\n" + DUT.encode(),
            "plan.yaml:2:11: duration: is 2h, but the phases add up to 1h: correct one, or leave duration out",
        ),
    ],
)
def test_files_that_are_no_plan(content: bytes, sentence: str, tmp_path: Path) -> None:
    """Each kind of unusable file is exit 2 and one sentence."""
    (tmp_path / "plan.yaml").write_bytes(content)
    assert soakwatch("check", "plan.yaml", cwd=tmp_path, check=2).stderr == f"soakwatch: {sentence}\n"


def test_check_tells_what_cannot_be_sampled(tmp_path: Path) -> None:
    """A process that does not run and a load that does not start are exit 1, each named; the rest is shown."""
    (tmp_path / "plan.yaml").write_text(
        "duration: 1h\ntargets:\n  dut:\n    sources: [local]\n    watch: {processes: [no-such-process]}\n"
        "  tg:\n    role: generator\n    sources:\n      - command: {run: [/no/such/program]}\n"
    )
    done = soakwatch("check", "plan.yaml", cwd=tmp_path, check=1)
    assert "system.memory.usage" in done.stdout
    assert done.stderr.splitlines() == [
        "soakwatch: plan.yaml:9:9: tg command: cannot start /no/such/program: No such file or directory",
        "soakwatch: plan.yaml: dut: no process 'no-such-process' is running: its findings would be inconclusive",
    ]


def test_the_example_plans_are_plans() -> None:
    """Every plan that is shipped as an example parses."""
    files = sorted((Path(__file__).parents[2] / "deploy" / "examples").rglob("*.yaml"))
    examples = [file for file in files if "campaigns" not in file.parts]  # those: tests/e2e/test_example_campaigns.py
    assert examples
    for example in examples:
        assert "rules: " in soakwatch("check", "--no-connect", str(example), check=0).stdout
