"""Memory of a whole run over SNMP, by the hour, in real time: the collector, its judge, its page; asserts nothing.

    python tests/bench/fleet_memory.py                          36 devices, 7,300 series every 10 s, 2 h
    python tests/bench/fleet_memory.py --devices 3 --minutes 5  a try

``soakwatch run`` as it is, with its record, its page and its own watch; four real net-snmpds answer. Memory is what the
kernel says of each process: resident (RSS), and its share (PSS), in which a page of a library that two processes have
mapped counts half in each, so that shares may be added.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench import snmp_stage as stage

AGENTS = 4
FEW_MARKS_MIN = (1, 5, 10, 15, 20, 30, 40, 50, 60)
HEADS = {"soakwatch-judge": "judge", "soakwatch.judge.live": "judge", "soakwatch.web": "page"}


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=36, help="of 203 series each")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between the polls of a device")
    parser.add_argument("--minutes", type=float, default=120.0)
    options = parser.parse_args()
    stage.inside()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        measure(options, Path(work), stack)
    return 0


def measure(options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
    """One run, and a line at each mark."""
    agents = stage.agents(stack, folder, AGENTS)
    profiles = stage.profile(folder / "profiles")
    targets = {}
    for number in range(options.devices):
        keys = {**stage.keys(agents[number % AGENTS], "2c", profiles), "interval": f"{options.interval:g}s"}
        targets[f"sw{number:03}"] = {"role": "dut", "sources": [{"snmp": keys}]}
    plan = {"name": "fleet", "phases": [{"soak": f"{options.minutes + 5:g}m"}], "targets": targets}
    (folder / "plan.yaml").write_text(json.dumps(plan))
    command = [str(Path(sys.executable).with_name("soakwatch")), "run", "plan.yaml", "--into", "run"]
    with (folder / "log").open("w") as log:
        process = psutil.Popen(command, cwd=folder, env=stage.secrets(), stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(lambda: process.kill() if process.poll() is None else None)
    began = time.monotonic()
    print(f"{options.devices} devices x 203 series, {options.interval:g} s apart; MB resident (share)\n")
    print("| after | collector | judge | page | others | collector and judge | all |\n|---|--:|--:|--:|--:|--:|--:|")
    marks = [float(mark) for mark in FEW_MARKS_MIN] + [float(mark) for mark in range(75, 72 * 60, 15)]
    for mark in marks:
        if mark > options.minutes:
            break
        while time.monotonic() < began + 60 * mark and process.poll() is None:
            time.sleep(1)
            with suppress(OSError):  # the page's process lives while somebody looks
                urllib.request.urlopen(
                    (folder / "run" / "web.url").read_text().strip() + "/api/health", timeout=30
                ).read()
        if process.poll() is not None:
            print(f"the run ended: {(folder / 'log').read_text()[-1000:]}")
            return
        print(line(mark, process), flush=True)
    process.terminate()
    process.wait(300)


def line(minutes: float, run: psutil.Process) -> str:
    """A row of the table."""
    found = {"collector": _memory(run), "judge": (0.0, 0.0), "page": (0.0, 0.0), "others": (0.0, 0.0)}
    for child in run.children(recursive=True):
        try:
            words = " ".join([child.name(), *child.cmdline()])
            name = next((name for head, name in HEADS.items() if head in words), "others")
            found[name] = _sum(found[name], _memory(child))
        except psutil.NoSuchProcess:
            continue
    both, whole = _sum(found["collector"], found["judge"]), _sum(*found.values())
    cells = [f"{rss:.0f} ({share:.0f})" for rss, share in (*found.values(), both, whole)]
    return f"| {minutes:g} min | {' | '.join(cells)} |"


def _memory(process: psutil.Process) -> tuple[float, float]:
    memory = process.memory_full_info()
    return memory.rss / 1e6, memory.pss / 1e6


def _sum(*parts: tuple[float, float]) -> tuple[float, float]:
    return sum(rss for rss, _ in parts), sum(share for _, share in parts)


if __name__ == "__main__":
    sys.exit(main())
