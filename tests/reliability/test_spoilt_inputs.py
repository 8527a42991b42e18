"""Spoilt inputs at everything that reads files or the network: a reading, or a refusal in words; nothing else.

``ATTEMPTS=1000000 tests/run -m slow -s tests/reliability/test_spoilt_inputs.py`` tries a million. What does harm
is kept in ``corpus/``, and is tried in every run of the tests from then on.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from tests.commands import Tally
from tests.reliability.inputs import INPUTS, Input, shares, spoilt

ATTEMPTS = int(os.environ.get("ATTEMPTS", "30000"))
SEED = int(os.environ.get("SEED", "7"))
CORPUS = Path(__file__).with_name("corpus")
_AT_ONCE = 2
_LOT = 500
_CPU_S = 20.0  # for one input of some kilobytes: more is a hang
_MEMORY = 2 * 2**30
_BY_NAME = {each.name: each for each in INPUTS}


class HangError(BaseException):
    """An input kept its reader busy for too long."""


@contextmanager
def bounded_memory() -> Iterator[None]:
    """A reader that asks for gigabytes gets a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def bounded_time() -> Iterator[None]:
    """A reader that is busy for too long is ended with a HangError; CPU time, so that a busy machine is no hang."""

    def ended(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise HangError(f"busy for more than {_CPU_S:g} s")

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def harm(kind: Input, data: bytes, folder: Path) -> str:
    """What an input does that it must not; "" if it is read or refused as it should be."""
    try:
        with bounded_time():
            kind.read(data, folder)
    except kind.refusals as refusal:
        return "" if str(refusal).strip() else "refused without a word"
    except (Exception, HangError) as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {error}"
    return ""


def tried(name: str, seed: str, attempts: int, folder: Path) -> tuple[str, int, list[tuple[bytes, str]]]:
    """Some attempts at one kind of input: its name, their number, and what did harm, once for each sort of harm."""
    kind, dice = _BY_NAME[name], random.Random(seed)
    seeds = kind.seeds()
    place = folder / hashlib.sha256(seed.encode()).hexdigest()[:12]
    place.mkdir()
    found: dict[str, bytes] = {}
    with bounded_memory():
        for _ in range(attempts):
            data = spoilt(seeds, dice)
            if why := harm(kind, data, place):
                found.setdefault(why[:60], data)
    return name, attempts, [(data, why) for why, data in found.items()]


def kept(name: str, data: bytes) -> Path:
    """An input that did harm, as a file that the tests try from now on."""
    place = CORPUS / name.replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    path = place / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def _corpus() -> list[tuple[str, Path]]:
    return [(each.name, path) for each in INPUTS for path in sorted((CORPUS / each.name.replace(" ", "-")).glob("*"))]


@pytest.mark.parametrize("kind", INPUTS, ids=lambda kind: kind.name)
def test_good_examples_are_read_and_some_spoilt_ones_do_no_harm(kind: Input, tmp_path: Path) -> None:
    """An example that is refused would try nothing but the refusal."""
    seeds = kind.seeds()
    assert seeds
    for seed in seeds:
        kind.read(seed, tmp_path)
    dice = random.Random(SEED)
    assert [
        why for _ in range(25 if kind.weight > 1 else 5) if (why := harm(kind, spoilt(seeds, dice), tmp_path))
    ] == []


@pytest.mark.parametrize(("name", "path"), _corpus(), ids=lambda part: getattr(part, "name", part))
def test_what_once_did_harm_does_none(name: str, path: Path, tmp_path: Path) -> None:
    with bounded_memory():
        assert harm(_BY_NAME[name], path.read_bytes(), tmp_path) == ""


@pytest.mark.slow
@pytest.mark.timeout(2 * 3600)
def test_spoilt_inputs_do_no_harm(tmp_path: Path, tally: Tally) -> None:
    lots = [
        (name, f"{SEED}/{name}/{number}", min(_LOT, attempts - number))
        for name, attempts in shares(ATTEMPTS).items()
        for number in range(0, attempts, _LOT)
    ]
    random.Random(SEED).shuffle(lots)  # the slow kinds are spread, so that both processes are busy to the end
    done: dict[str, int] = dict.fromkeys(_BY_NAME, 0)
    harms: dict[tuple[str, str], bytes] = {}
    with ProcessPoolExecutor(_AT_ONCE) as pool:
        futures = [pool.submit(tried, name, seed, attempts, tmp_path) for name, seed, attempts in lots]
        for future in futures:
            name, attempts, found = future.result()
            done[name] += attempts
            for data, why in found:
                known = harms.setdefault((name, why), data)
                harms[name, why] = min(known, data, key=len)
    failures = [f"{name}: {why} ({kept(name, data)})" for (name, why), data in harms.items()]
    kinds = "plans, profiles, tables, events, traps, responses, logs and outputs"
    tally(f"spoilt inputs of {len(done)} kinds ({kinds}): read, or refused in words", sum(done.values()), failures)
