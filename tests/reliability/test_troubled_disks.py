"""Disks that are full, have no inodes left, or become read-only under a run: said, and nothing committed is lost."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, Tally, command_in, environment, wait_until

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView

ATTEMPTS = int(os.environ.get("ATTEMPTS", "20"))
AT_ONCE = 2
SECONDS = 8
EXT4 = "ext4"
PLAN = f"""\
name: disk
duration: {SECONDS}s
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [cpu]}}}}]}}}}
"""


@contextmanager
def disk(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs of its own, or ext4 in a file."""
    folder.mkdir(parents=True)
    if options == EXT4:
        image = _image(folder)
        with image.open("wb") as file:
            file.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
    _mount(folder, options)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _image(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.img")


def _mount(folder: Path, options: str) -> None:
    if options == EXT4:
        subprocess.run(["mount", "-o", "loop", _image(folder), folder], check=True)
    else:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)


def _repaired(folder: Path) -> None:
    """Unmounted, checked and mounted again; e2fsck ends with 1 where it repaired something."""
    subprocess.run(["umount", folder], check=True)
    assert subprocess.run(["e2fsck", "-fy", _image(folder)], check=False, capture_output=True).returncode in {0, 1}
    _mount(folder, EXT4)


def _fill(place: Path) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={place / 'full'}", "bs=4k"], check=False, capture_output=True)


def _full_for_a_while(place: Path, dice: random.Random) -> None:
    _fill(place)
    time.sleep(dice.uniform(0.5, 2.5))  # how long it is full
    (place / "full").unlink()


def _nothing(place: Path, dice: random.Random) -> None:
    """It is so from the start."""


def _full(place: Path, dice: random.Random) -> None:
    del dice
    _fill(place)


def _fails(place: Path, dice: random.Random) -> None:
    """As after an error of the medium: the journal is given up, and every write fails from then on."""
    del dice
    subprocess.run(["mount", "-o", "remount,abort", place], check=True)


WAYS: Mapping[str, tuple[str, Callable[[Path, random.Random], None], frozenset[int]]] = {
    # 2: refused where not even the empty record fits; 4: broken off later. Both with a sentence.
    "too small from the start": ("size=300k", _nothing, frozenset({2, 4})),
    "full for a while": ("size=20m", _full_for_a_while, frozenset({0, 3})),
    "full to the end": ("size=20m", _full, frozenset({0, 3, 4})),
    "no inodes left": ("size=20m,nr_inodes=8", _nothing, frozenset({0, 3})),
    "failing": (EXT4, _fails, frozenset({4})),
}


def polls(run: Path) -> int:
    """The answered polls of the device that are committed; 0 before there is a record."""
    try:
        with RecordView.open(run) as view:
            (source,) = [source for source in view.sources() if source.target == "dut"]
            return len(view.answered_ns(source.id))
    except (RecordError, ValueError):
        return 0


def tried(way: str, seed: int, folder: Path) -> list[str]:
    """What went wrong in one attempt."""
    options, deed, codes = WAYS[way]
    dice = random.Random(seed)
    with disk(folder / "disk", options) as place:
        (folder / "p.yaml").write_text(PLAN, encoding="utf-8")
        run = place / "run"
        process = subprocess.Popen(
            [SOAKWATCH, "run", "p.yaml", "--into", "disk/run", "--no-web"],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: polls(run) > 0 or process.poll() is not None, "the first poll")
        time.sleep(dice.uniform(0, SECONDS - 4))  # the moment that is tried
        before = polls(run)
        deed(place, dice)
        out, err = process.communicate(timeout=240)
        problems = []
        if process.returncode not in codes:
            problems.append(f"exit code {process.returncode}")
        if process.returncode in {2, 4} and "\nsoakwatch: " not in f"\n{err}":
            problems.append("it broke without a word")
        if "Traceback" in out + err:
            problems.append("a traceback")
        if options == EXT4:
            _repaired(place)
        (place / "full").unlink(missing_ok=True)
        after = polls(run)
        if after < before:
            problems.append(f"{before} polls were committed, and {after} are left")
        if way in {"full for a while", "no inodes left"} and after < SECONDS * 5 - 2:
            problems.append(f"{after} polls instead of {SECONDS * 5}")
        if after:
            judged = command_in(folder)("judge", "disk/run", timeout=240)
            if judged.returncode not in {0, 1, 3}:
                problems.append(f"judged: {judged.returncode}: {judged.stderr}")
            if process.returncode == 4 and judged.returncode == 0:
                problems.append("half of a run passes")
            verified = command_in(folder)("verify", "disk/run", timeout=240)
            if verified.returncode not in ({0} if process.returncode in {0, 1, 3} else {0, 3}):
                problems.append(f"verified: {verified.returncode}: {verified.stdout}{verified.stderr}")
    return [*problems, out[-2000:], err] if problems else []


@pytest.mark.slow
@pytest.mark.punctual
def test_troubled_disks_lose_nothing_that_was_committed(tmp_path: Path, tally: Tally) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    ways = list(WAYS)
    planned = [(ways[n % len(ways)], 42 + n, tmp_path / str(n)) for n in range(ATTEMPTS)]
    with ThreadPoolExecutor(AT_ONCE) as crew:
        results = list(crew.map(lambda one: tried(*one), planned))
    failures = [f"{one}: {'; '.join(problems)}" for one, problems in zip(planned, results, strict=True) if problems]
    tally(
        "disks that are too small, full for a while, full to the end, without inodes, failing", len(planned), failures
    )
