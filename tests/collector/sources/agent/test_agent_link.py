"""The parts of the collector's side that need no agent: positions in numbered polls, offsets, triggers, bundles."""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from soakwatch.core.errors import SoakwatchError
from soakwatch.sources.pollers.agent.agent_bundle import bundle, fits, installed_psutil, psutil_of_wheel, write_bundle
from soakwatch.sources.pollers.agent.agent_clocks import (
    Exchange,
    MeasuredClock,
    PollGrid,
    best_offset,
    in_our_time,
    smoothed,
)
from soakwatch.sources.pollers.agent.fetch_progress import ACK_AFTER_S, FetchProgress
from soakwatch_agent.framing import FrameError, frame_of, poll_line
from soakwatch_agent.version import VERSION
from soakwatch_agent.wire import decode
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

SECOND = 10**9


def test_numbers_that_never_came_are_counted_whatever_came_early() -> None:
    """Polls 1-3, then the newest 9 early, then 4, 7, 8: 5 and 6 are missing; 9 comes once."""
    progress = FetchProgress()
    assert [progress.take(number, ahead=False) for number in (1, 2, 3)] == [True] * 3
    assert progress.take(9, ahead=True)
    assert [progress.take(number, ahead=False) for number in (4, 7, 8, 9)] == [True, True, True, False]
    assert (progress.after, progress.missing, progress.ahead) == (9, 2, set())


def test_only_what_was_handed_over_some_seconds_ago_is_acknowledged() -> None:
    """What waits in memory, and what the record may not have committed, would be lost with this process."""
    progress = FetchProgress()
    for number in range(1, 6):
        progress.take(number, ahead=False)
    assert progress.settle(100.0, [4, 5]) == 0
    assert progress.settle(100.0 + ACK_AFTER_S, []) == 3
    assert progress.settle(100.0 + 2 * ACK_AFTER_S, []) == 5


def test_random_conversations_take_each_poll_once(tmp_path: Path) -> None:
    """Interruptions, early polls and repeats in any order: nothing twice, and all that came is accounted for."""
    chance = random.Random(11)
    for _ in range(200):
        progress, taken, last = FetchProgress(), [], 0
        for _ in range(30):
            last += chance.randrange(4)
            if chance.random() < 0.2:
                progress.start(progress.acked, last)
            batch = list(range(progress.after + 1, last + 1))[: chance.randrange(1, 5)]
            taken += [number for number in batch if progress.take(number, ahead=False)]
            if last and (not batch or batch[-1] < last) and progress.take(last, ahead=True):
                taken.append(last)
            assert len(taken) == len(set(taken))
        assert progress.missing == 0
        assert sorted(taken) == sorted({*range(1, progress.after + 1), *progress.ahead})


def test_a_slow_network_in_one_direction_moves_the_offset_by_no_more_than_it_says() -> None:
    """The true offset lies within the error of what is measured, whatever the ways were."""
    chance = random.Random(2)
    for _ in range(500):
        true, exchanges = chance.randrange(-(10**12), 10**12), []
        for _ in range(5):
            sent, there, back = chance.randrange(10**12), chance.randrange(10**8), chance.randrange(10**8)
            exchanges.append(Exchange(sent, sent + there + back, sent + there + true, 0))
        offset = best_offset(exchanges)
        assert abs(offset.steady_ns - true) <= offset.error_ns + 1
        again = smoothed(offset, best_offset(exchanges[:2]))
        assert abs(again.steady_ns - true) <= 10**8 + 1


def test_a_poll_never_slides_into_its_neighbours_due_time() -> None:
    """With the offset wrong by 40 ms a poll still begins at its own due time."""
    for wrong in (-40_000_000, 40_000_000):
        poll = Poll(
            0,
            5 * SECOND,
            5 * SECOND + 1000,
            10,
            PollOutcome.OK,
            None,
            Answer((Sample("system.cpu.load", "minutes=1", 1.0, 5 * SECOND + 1000),), (), ()),
        )
        ours = in_our_time(poll, 2 * SECOND + wrong, SECOND, 0)
        assert ours.due_ns == 3 * SECOND
        assert 3 * SECOND <= ours.start_ns < 4 * SECOND
        assert ours.answer.samples[0].time_ns >= ours.due_ns


def test_no_line_makes_the_reader_of_frames_fail() -> None:
    """Random and mutated lines are frames or one sentence that quotes nothing of them."""
    chance = random.Random(8)
    good = poll_line(5, 1, b'{"v":1}')
    assert frame_of(good).seq == 5
    for _ in range(4000):
        data = bytearray(chance.choice([good, b'done {"id":1}\n', b"hello {}\n", b"error {}\n"]))
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        outcome = "fine"
        try:
            frame_of(bytes(data))
        except FrameError as error:
            outcome = str(error)
        assert outcome.isprintable()


def test_the_bundle_is_the_same_bytes_and_runs_with_a_bare_python(tmp_path: Path) -> None:
    """``python3 -I -S`` has no psutil: it comes from the bundle, and is verified when it is used again."""
    psutil = installed_psutil()
    data = bundle(psutil)
    assert bundle(psutil) == data
    path = tmp_path / "agent.pyz"
    write_bundle(data, path)
    command = [sys.executable, "-I", "-S", str(path)]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=240, check=True)
    assert version.stdout.strip() == VERSION
    (library,) = (tmp_path / "lib").iterdir()
    compiled = next(library.rglob("*.so"))
    compiled.write_bytes(b"not what was packed")
    once = subprocess.run([*command, "--once"], capture_output=True, text=True, timeout=240, check=True)
    assert {sample.metric for sample in decode(once.stdout).answer.samples} >= {"system.memory.usage", "system.uptime"}
    assert compiled.read_bytes()[:4] == b"\x7fELF"


def test_the_bundle_runs_on_python_3_9_and_refuses_3_8(tmp_path: Path) -> None:
    """Where they are installed."""
    path = tmp_path / "agent.pyz"
    write_bundle(bundle(installed_psutil()), path)
    pythons = {
        minor: next(iter(Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python")), None)
        for minor in (8, 9)
    }
    if None in pythons.values():
        pytest.skip("there is no Python 3.8 and 3.9 on this machine")
    once = subprocess.run(
        [str(pythons[9]), "-I", str(path), "--once", "--count", "2"],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert len(once.stdout.splitlines()) == 2
    old = subprocess.run([str(pythons[8]), "-I", str(path)], capture_output=True, text=True, timeout=240, check=False)
    assert (old.returncode, old.stderr.count("\n")) == (2, 1)
    assert "Python 3.9 or newer is needed" in old.stderr


def test_a_wheel_for_another_machine_is_taken_and_a_wrong_one_refused(tmp_path: Path) -> None:
    """The files of the wheel, its machine and libc; other wheels and other files are one sentence."""

    def wheel(tag: str, name: str = "psutil") -> Path:
        path = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}.whl"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(f"{name}/__init__.py", "")
            packed.writestr(f"{name}/_psutil_linux.abi3.so", b"\x7fELF")
            packed.writestr(f"{name}-7.2.2.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        return path

    arm = psutil_of_wheel(wheel("cp36-abi3-manylinux_2_17_aarch64"))
    assert (arm.machine, arm.libc, arm.version) == ("aarch64", "glibc", "7.2.2")
    assert psutil_of_wheel(wheel("cp36-abi3-musllinux_1_2_x86_64")).libc == "musl"
    with pytest.raises(SoakwatchError, match=r"the host is x86_64 with glibc, and this psutil is for aarch64.*--wheel"):
        fits(arm, "x86_64", "glibc")
    with pytest.raises(SoakwatchError, match="one version of Python only"):
        psutil_of_wheel(wheel("cp311-cp311-manylinux_2_17_x86_64"))
    with pytest.raises(SoakwatchError, match="not for Linux"):
        psutil_of_wheel(wheel("cp36-abi3-macosx_11_0_arm64"))
    with pytest.raises(SoakwatchError, match="not a wheel of psutil"):
        psutil_of_wheel(wheel("cp36-abi3-manylinux_2_17_x86_64", "other"))
    (tmp_path / "text.whl").write_text("text")
    with pytest.raises(SoakwatchError, match="cannot be read as a wheel"):
        psutil_of_wheel(tmp_path / "text.whl")


def test_due_times_lie_on_the_grid_of_the_first_poll() -> None:
    """Of 5 s from a whole second on; a poll that is late has the due time before it."""
    grid = PollGrid(5 * SECOND)
    assert [grid.due_ns(now_ns) for now_ns in (3 * SECOND + 7, 8 * SECOND, 12 * SECOND)] == [
        3 * SECOND,
        8 * SECOND,
        8 * SECOND,
    ]


def test_each_boot_of_a_host_has_its_own_offset() -> None:
    """Polls of the boot before are converted with the offset of then; those of an unknown one with today's."""
    clock = MeasuredClock()
    assert clock.due(0.0)
    for epoch, agent_ns in ((1, 1000), (2, 50)):
        clock.measured(epoch, [Exchange(0, 2, agent_ns, 0)], 100.0)
    assert [clock.offset_in(epoch).steady_ns for epoch in (1, 2, 3)] == [999, 49, 49]
    assert (clock.news, clock.due(159.0), clock.due(160.0)) == (True, False, True)


def test_the_numbers_of_an_agent_that_was_installed_again_start_again() -> None:
    """What was missing before stays counted, and is told once."""
    progress = FetchProgress()
    progress.start(0, 0, "first")
    for number in (1, 4):
        progress.take(number, ahead=False)
    assert (progress.take_news(), progress.take_news()) == (2, 0)
    progress.start(0, 9, "second")
    assert (progress.after, progress.acked, progress.missing) == (0, 0, 2)
    assert progress.take(1, ahead=False)
