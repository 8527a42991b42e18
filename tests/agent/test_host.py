"""The host as a whole: the command, its refusals, the zipapp, old Pythons, leaks, and psutil as the oracle."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import zipapp
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

import soakwatch_agent
import soakwatch_model
from soakwatch_agent.context import SECOND, HostContext, watch_of
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_agent.host import Host, probe_names, source
from soakwatch_agent.wire import decode
from soakwatch_model.metric import BY_NAME, fault_of
from soakwatch_model.metric_device import DEVICE
from soakwatch_model.sample import object_labels

_PACKAGE = Path(soakwatch_agent.__file__).parent
_MODEL = Path(soakwatch_model.__file__).parent
_EDGE = Path(__file__).parent / "roots" / "edge-4cores" / "root"
_AGENT = str(Path(sys.executable).parent / "soakwatch-agent")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command."""
    return subprocess.run([_AGENT, *arguments], capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--interval", "5"], "'5' is not an interval: write 200ms, 1s or 5m"),
        (["--count", "0"], "'0' is not a count: write 1 or more"),
        (["--process", "pid:abc"], "'abc' is not a pid: write pid:1234"),
        (["--process", "cmdline:("], "is not a regular expression"),
        (["--process", "cmdline:"], "a watched process needs a name"),
        (["--probe", "gpu"], "there is no probe 'gpu': there are boot, conntrack"),
        (["--root", "/nowhere"], "--root /nowhere: there is no such folder"),
        (["--root", "/etc"], "it has no folder proc"),
        (["--unknown"], "unrecognized arguments: --unknown"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments: list[str], sentence: str) -> None:
    """Wrong arguments are refused in one line, without a traceback."""
    done = run("--once", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_a_poll_of_this_machine_keeps_to_the_catalogue() -> None:
    """Every sample of a real poll has a name, a range and labels of the catalogue."""
    done = run("--once", "--count", "2", "--process", "nobody-has-this-name")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (decode(line) for line in done.stdout.splitlines())
    for sample in first.answer.samples + second.answer.samples:
        assert fault_of(sample.metric, sample.value) is None
        assert set(object_labels(sample.object)) == set(BY_NAME[sample.metric].labels)
    names = {sample.metric for sample in first.answer.samples}
    assert {"system.memory.usage", "system.cpu.time", "system.uptime", "process.up"} <= names
    assert "system.cpu.utilization" not in names
    assert not [fault for fault in first.answer.faults if "failed" in fault.text]


def test_the_loop_keeps_its_grid_and_ends_properly_at_an_interrupt() -> None:
    """Due times stand on the interval's grid; Ctrl-C ends the command with exit code 0 and without a traceback."""
    with subprocess.Popen(
        [_AGENT, "--interval", "100ms", "--probe", "boot"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        polls = [decode(agent.stdout.readline()) for _ in range(4)]
        agent.send_signal(signal.SIGINT)
        _, complaint = agent.communicate(timeout=240)
    assert (agent.returncode, complaint) == (0, "")
    assert all((b.due_ns - a.due_ns) % (SECOND // 10) == 0 for a, b in pairwise(polls))
    assert all(poll.start_ns >= poll.due_ns for poll in polls)


def test_the_list_names_every_probe_and_only_metrics_of_the_catalogue() -> None:
    """``--list`` shows each file of the folder; together the probes claim each metric once."""
    done = run("--list")
    assert done.returncode == 0
    files = {path.stem for path in (_PACKAGE / "probes").glob("*.py")} - {"__init__"}
    assert set(probe_names()) == files
    claimed = [metric for name in probe_names() for metric in source(name).metrics]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= set(BY_NAME)
    assert all(f"\n{name} " in "\n" + done.stdout for name in files)
    remote = {metric.name for metric in DEVICE}
    here = {name for name in BY_NAME if name.startswith(("system.", "process."))} - remote
    assert {name for name in claimed if not name.startswith("hardware.")} == here


def test_one_probe_that_fails_hides_no_other(tmp_path: Path) -> None:
    """A file that holds nonsense is a fault of its probe's metrics; the others answer."""
    shutil.copytree(_EDGE, tmp_path / "root", symlinks=True)
    (tmp_path / "root/proc/loadavg").write_text("a b c")
    answer = Host(HostContext(str(tmp_path / "root"))).poll(0)
    assert {fault.metric for fault in answer.faults if "the probe load failed" in fault.text} == {
        "system.cpu.load",
        "system.interrupts",
    }
    assert {"system.memory.usage", "system.uptime"} <= {sample.metric for sample in answer.samples}


@pytest.mark.parametrize("polls", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_polls_leak_nothing(polls: int) -> None:
    """Descriptors and threads of the process are as many after many polls as after two."""
    host, me = Host(HostContext(watches=(watch_of(f"pid:{os.getpid()}"),))), psutil.Process()
    for second in range(2):
        host.poll(second * SECOND)
    before = (me.num_fds(), me.num_threads())
    for second in range(2, 2 + polls):
        host.poll(second * SECOND)
    assert (me.num_fds(), me.num_threads()) == before
    host.close()


def test_the_system_is_what_psutil_says() -> None:
    """Memory, swap, cores, disks, interfaces and boot time agree with psutil where they stand still."""
    samples = {(s.metric, s.object): s.value for s in Host(HostContext()).poll(0).samples}
    assert samples["system.memory.limit", ""] == psutil.virtual_memory().total
    assert samples["system.memory.swap.limit", ""] == psutil.swap_memory().total
    assert samples["system.cpu.logical.count", ""] == psutil.cpu_count()
    assert samples["system.boot.time", ""] == pytest.approx(psutil.boot_time(), abs=2)
    assert samples["system.cpu.time", "mode=user"] == pytest.approx(psutil.cpu_times().user, rel=0.01, abs=5)
    interfaces = {object_labels(o)["interface"] for m, o in samples if m == "system.network.io"}
    assert interfaces == set(psutil.net_io_counters(pernic=True))
    assert samples["system.context_switches", ""] <= psutil.cpu_stats().ctx_switches


def test_shares_are_of_the_time_between_polls(tmp_path: Path) -> None:
    """A core that was busy 30 of 100 ticks shows 0.3; idle time that steps back a little is held, not a wrap."""
    shutil.copytree(_EDGE, tmp_path / "root", symlinks=True)
    stat = tmp_path / "root/proc/stat"
    stat.write_text("cpu 100 0 0 1000 50 0 0 0\ncpu0 100 0 0 1000 50 0 0 0\nctxt 1\nbtime 1\n")
    host = Host(HostContext(str(tmp_path / "root")), ["cpu"])
    host.poll(0)
    stat.write_text("cpu 130 0 0 1070 49 0 0 0\ncpu0 130 0 0 1070 49 0 0 0\nctxt 2\nbtime 1\n")
    samples = {(s.metric, s.object): s.value for s in host.poll(SECOND).samples}
    assert samples["system.cpu.core.utilization", "core=0"] == pytest.approx(0.3)
    assert samples["system.cpu.time", "mode=iowait"] == 50 / os.sysconf("SC_CLK_TCK")


def test_the_zipapp_runs_with_nothing_but_psutil_beside_it(tmp_path: Path) -> None:
    """The folder as one file, with a Python that sees psutil and nothing else of ours."""
    staging, site = tmp_path / "staging", tmp_path / "beside"
    for folder in (_PACKAGE, _MODEL):
        shutil.copytree(folder, staging / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    archive = tmp_path / "agent.pyz"
    zipapp.create_archive(staging, archive, main="soakwatch_agent.__main__:run")
    site.mkdir()
    (site / "psutil").symlink_to(Path(psutil.__file__).parent)
    command = [sys.executable, "-I", "-S", "-c", _RUN_ARCHIVE, str(site), str(archive), "--once", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert "system.memory.usage" in listed.stdout
    once = subprocess.run(command[:-1], capture_output=True, text=True, timeout=240, check=True)
    assert decode(once.stdout).answer.samples


_RUN_ARCHIVE = """import runpy, sys
sys.path.append(sys.argv.pop(1))
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_every_file_parses_on_python_3_9() -> None:
    """The guest runs where the collector would not: no syntax that 3.9 lacks."""
    for path in (*_PACKAGE.rglob("*.py"), *_MODEL.rglob("*.py")):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))


def test_the_modules_without_psutil_run_on_a_real_python_3_9() -> None:
    """Dataclasses with slots and annotations of the seam classes are evaluated by a 3.9 interpreter."""
    built = [str(path) for path in Path("~/.pyenv/versions").expanduser().glob("3.9.*/bin/python")]
    old = next(iter(built), None) or shutil.which("python3.9")
    if old is None:
        pytest.skip("there is no Python 3.9 on this machine")
    modules = (
        "slots",
        "wire",
        "procfs",
        "kernlog",
        "corefiles",
        "framing",
        "segments",
        "spool",
        "agentclock",
        "recorder",
        "service",
        "bundled_main",
        "command_pattern",
    )
    program = "import sys; sys.path[:0] = sys.argv[1:]\nimport soakwatch_model.metric\n" + "".join(
        f"import soakwatch_agent.{name}\n" for name in modules
    )
    program += (
        "from soakwatch_model.event import Event\n"
        "from soakwatch_model.sample import *\nfrom soakwatch_agent.wire import *\n"
        "told = (Event('core.dump', '', 'process=a', 5, None, {'file': 'core.7'}),)\n"
        "p = Poll(1, 2, 3, 4, PollOutcome.OK, None, Answer((Sample('m', '', 2**60 + 1, 3),), told, ()))\n"
        "assert decode(encode(p)) == p\n"
        "from soakwatch_agent.command_pattern import search_of\n"
        "found = search_of(r'^(?!.*grep)(?i:JAVA) [^;]*\\bx{1,3}$')\n"
        "assert found('java -jar -xx') and not found('java grep xx')\n"
    )
    subprocess.run([old, "-I", "-c", program, str(_PACKAGE.parent), str(_MODEL.parent)], check=True, timeout=240)
    files = [str(path) for folder in (_PACKAGE, _MODEL) for path in folder.rglob("*.py")]
    compiled = "import sys\nfor f in sys.argv[1:]: compile(open(f, encoding='utf-8').read(), f, 'exec')"
    subprocess.run([old, "-I", "-c", compiled, *files], check=True, timeout=240)


def test_the_fingerprint_of_a_recorded_machine() -> None:
    """Cards with their link below capability, settings, governor by core, and no secret of a command line."""
    tree = json.loads(json.dumps(fingerprint(str(_EDGE))))
    card = tree["nics"]["eth0"]
    assert (card["driver"], card["driver_version"], card["rx_queues"], card["tx_queues"]) == ("ice", "1.14.9", 3, 1)
    assert card["pcie"]["below_capability"] is True
    assert (tree["cpu"]["sockets"], tree["cpu"]["logical_cores"], tree["cpu"]["isolated"]) == (2, 4, "2-3")
    assert tree["cpu"]["governor"] == "performance (1 cores), powersave (1 cores)"
    assert tree["kernel_command_line"] == ["isolcpus=2,3", "hugepagesz=1G", "nosmt"]
    assert tree["sysctls"]["net.ipv4.tcp_rmem"] == "4096 87380 6291456"
    assert tree["processes"]["nginx"] == 2
    assert tree["host"]["virtual"] == "kvm"
    assert "hidden" not in json.dumps(tree)
    assert "secret" not in json.dumps(tree)
    assert "the clock source is not known" in tree["notes"]


def test_the_fingerprint_of_this_machine_is_json() -> None:
    """``--fingerprint`` prints one JSON object with the parts that a report shows."""
    tree = json.loads(run("--fingerprint").stdout)
    assert {"host", "cpu", "memory", "nics", "sysctls", "kernel_command_line", "processes", "agent"} <= set(tree)
    assert tree["memory"]["total_bytes"] == psutil.virtual_memory().total
