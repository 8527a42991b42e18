"""Recorded machines, replayed by the installed command and compared with what it said before."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch_agent.wire import decode
from soakwatch_model.metric import BY_NAME, fault_of
from soakwatch_model.sample import Poll, object_labels

_ROOTS = Path(__file__).parent / "roots"
_MACHINES = sorted(path.name for path in _ROOTS.iterdir() if path.is_dir())
_AGENT = Path(sys.executable).parent / "soakwatch-agent"


def replay(machine: str) -> list[Poll]:
    """Two polls of a recorded machine by the installed command, without waiting."""
    arguments = (_ROOTS / machine / "arguments").read_text().splitlines()
    command = [str(_AGENT), "--root", str(_ROOTS / machine / "root"), "--once", "--count", "2", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert done.stderr == ""
    return [decode(line) for line in done.stdout.splitlines()]


def transcript(polls: list[Poll]) -> str:
    """Polls as lines that a person compares; times are left out, those of files as well (git keeps none)."""
    lines = []
    for number, poll in enumerate(polls):
        lines.append(f"poll {number} {poll.outcome.value}")
        lines += [f"  {s.metric} [{s.object}] {s.value!r}" for s in poll.answer.samples]
        for event in poll.answer.events:
            detail = {key: value for key, value in sorted(event.detail.items()) if key != "mtime_s"}
            lines.append(f"  event {event.kind} [{event.object}] {json.dumps(detail)}")
        lines += [f"  fault {f.metric} [{f.object}] {f.text}" for f in poll.answer.faults]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("machine", _MACHINES)
def test_a_recorded_machine_gives_what_it_gave_before(machine: str, request: pytest.FixtureRequest) -> None:
    """The command over a recorded tree gives the golden output, reading by reading."""
    golden, output = _ROOTS / machine / "golden.txt", transcript(replay(machine))
    if request.config.getoption("--update-golden", default=False):
        golden.write_text(output)
    difference = list(difflib.unified_diff(golden.read_text().splitlines(), output.splitlines(), lineterm="", n=1))
    assert not difference, "\n".join(difference)


@pytest.mark.parametrize("machine", _MACHINES)
def test_every_reading_is_one_that_the_catalogue_allows(machine: str) -> None:
    """Name, range and labels of every sample are the catalogue's, and no object is reported twice in a poll."""
    for poll in replay(machine):
        seen = set()
        for sample in poll.answer.samples:
            assert fault_of(sample.metric, sample.value) is None
            assert set(object_labels(sample.object)) == set(BY_NAME[sample.metric].labels)
            assert (sample.metric, sample.object) not in seen
            seen.add((sample.metric, sample.object))
            assert sample.time_ns == poll.start_ns


def test_a_recording_tells_nothing_of_the_machine_that_replays_it() -> None:
    """Two different machines share no process and no filesystem size, so nothing came from this one."""
    first, second = (replay(machine)[0] for machine in ("edge-4cores", "vm-2cores"))
    sizes = [{s.value for s in p.answer.samples if s.metric == "system.memory.limit"} for p in (first, second)]
    assert sizes[0].isdisjoint(sizes[1])


def test_recordings_stay_small() -> None:
    """A recorded tree holds less than 300 KB, and says where it is from."""
    for machine in _MACHINES:
        files = [path for path in (_ROOTS / machine).rglob("*") if path.is_file() and not path.is_symlink()]
        assert sum(path.stat().st_size for path in files) < 300_000
        assert (_ROOTS / machine / "ORIGIN").read_text().strip()
