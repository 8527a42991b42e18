"""Short nights with readings that cannot be, and with real bursts: which of them fail?

    python tests/bench/accuracy/garbled.py --nights 2000 --jobs 2
    python tests/bench/accuracy/garbled.py --nights 50 --kind reset --each
    python tests/bench/accuracy/garbled.py --nights 1 --seed 17 --keep runs/seed-17     keeps the record

Each night is drawn from its seed: a device of 8 to 15 series for 2 to 4 h, read each minute, under a generator that
loses nothing. In the even ones one to three readings are garbled, each kind of ``GARBLES`` in a series that it can
befall; the device is well. In the odd ones packets are lost in one burst, counted by the device or by the generator,
and half of those have a garbled reading too. Each is a record, judged by ``soakwatch judge``; what is read is its
verdict.json. Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np  # noqa: E402
from tests.bench.accuracy.lives import SOURCES  # noqa: E402
from tests.bench.accuracy.night import Floats, Key, Night, floats, write_run  # noqa: E402
from tests.bench.accuracy.tables import table  # noqa: E402

from soakwatch.cli.main import run as command  # noqa: E402
from soakwatch_model.metric import BY_NAME, COUNTER  # noqa: E402

_CADENCE_S: Final = 60.0
_GIB = 2.0**30
_RATE = "load.tx.packet.rate"
_DROPS: Final = ("system.network.packet.dropped", "queue.dropped", "system.softnet.dropped")


def well(seed: int) -> Night:
    """A night in which nothing happens: its rates, levels and sizes are drawn."""
    rng = np.random.default_rng([31, seed])
    length_s = float(rng.choice([7200.0, 10800.0, 14400.0]))
    at_s = floats(np.arange(0, round(length_s / _CADENCE_S)) * _CADENCE_S + 0.5)
    night = Night(rng, seed, length_s, _CADENCE_S, at_s, SOURCES)
    night.answered = {source.name: np.ones(at_s.size, np.bool_) for source in SOURCES}
    night.phases.append(("soak", 0.0, length_s))
    n = at_s.size
    each = float(np.exp(rng.uniform(np.log(1e3), np.log(5e5)))) * _CADENCE_S
    counted = np.cumsum(np.round(each * (1 + 0.01 * rng.standard_normal(n))))
    since = float(rng.choice([0, int(rng.integers(1, 10**6)), int(rng.integers(10**6, 3 * 10**9))]))
    night.put("load.tx.packets", counted)
    night.put("load.rx.packets", counted.copy())
    night.put(_RATE, floats(each / _CADENCE_S * (1 + 0.01 * rng.standard_normal(n))))
    for name, of in (("eth1,direction=receive", counted), ("eth2,direction=transmit", counted)):
        night.put("system.network.packets", of + since, f"interface={name}")
    night.put("system.network.io", counted * 512 + 700 * since, "interface=eth1,direction=receive")
    if rng.random() < 0.5:
        night.put("system.network.speed", np.full(n, float(rng.choice([1e9, 1e10, 1e11]))), "interface=eth1")
    places = ("interface=eth1,direction=receive", "queue=0", "core=0")
    for metric, place in zip(_DROPS, places, strict=True):
        olds = [int(rng.integers(1, 1000)), int(rng.integers(1000, 10**6)), int(3e9 + rng.integers(10**9))]
        old = float(rng.choice([0, 0, *olds]))
        night.put(metric, np.full(n, old), place)
    night.put("system.softnet.processed", counted + since, "core=0")
    limit = float(rng.choice([8, 16, 64])) * _GIB
    used = limit * rng.uniform(0.2, 0.6) * (1 + 0.002 * rng.standard_normal(n))
    used = floats(np.round(used / 4096) * 4096)
    night.put("system.memory.limit", np.full(n, limit))
    night.put("system.memory.usage", used)
    night.put("system.memory.available", limit - used)
    night.put("system.cpu.utilization", floats(np.clip(0.3 + 0.03 * rng.standard_normal(n), 0.02, 0.9)))
    night.put("system.uptime", float(rng.uniform(1e4, 1e7)) + at_s)
    night.sources = tuple(source for source in SOURCES if any(source.brings(key) for key in night.value))
    return night


# --- what cannot be ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Garble:
    """One way of being wrong: which series it befalls, and what it makes of a reading (its value, all of them)."""

    name: str
    befalls: Callable[[Key, Floats], bool]
    changes: Callable[[Floats, int, np.random.Generator], None]


def _is_counter(key: Key, value: Floats) -> bool:
    return BY_NAME[key.metric].kind == COUNTER


def _lone(to: Callable[[float], float], lasts: int = 1) -> Callable[[Floats, int, np.random.Generator], None]:
    def change(value: Floats, place: int, rng: np.random.Generator) -> None:
        for index in range(place, min(place + lasts, value.size)):
            value[index] = to(float(value[index]))

    return change


def _reset(value: Floats, place: int, rng: np.random.Generator) -> None:
    value[place:] -= value[place - 1 if place else 0]


def _again(value: Floats, place: int, rng: np.random.Generator) -> None:
    value[place % 10 + 1 :: 10] = 0.0


def _more_than_came(value: Floats, place: int, rng: np.random.Generator) -> None:
    value[place:] += 60.0 * 5e5 * float(rng.uniform(300, 3000))


def _stays(value: Floats, place: int, rng: np.random.Generator) -> None:
    value[place:] += 2.0**32


def _leaps(value: Floats, place: int, rng: np.random.Generator) -> None:
    value[place:] += 1e15 * float(rng.uniform(0.1, 1))


def _drops(key: Key, value: Floats) -> bool:
    return key.metric in _DROPS


GARBLES: Final = (
    Garble("up by 2^32 and back", _is_counter, _lone(lambda was: was + 2.0**32)),
    Garble("up by 2^64 and back", _is_counter, _lone(lambda _: 2.0**64)),
    Garble(
        "all 32 bits set and back", lambda k, v: _is_counter(k, v) and v.max() < 2**32, _lone(lambda _: 2.0**32 - 1)
    ),
    Garble("10^15 and back", _is_counter, _lone(lambda was: was + 1e15)),
    Garble("10^8 and back", lambda k, v: _is_counter(k, v) and bool(v[0] > 4), _lone(lambda was: was + 1e8)),
    Garble("to 0 and back", lambda k, v: _is_counter(k, v) and bool(v[0] > 0), _lone(lambda _: 0.0)),
    Garble("to 0 twice and back", lambda k, v: _is_counter(k, v) and bool(v[0] > 0), _lone(lambda _: 0.0, 2)),
    Garble("to 0 again and again", lambda k, v: _is_counter(k, v) and bool(v[0] > 0), _again),
    Garble("down by 2^32 and back", lambda k, v: _is_counter(k, v) and v[0] >= 2**32, _lone(lambda was: was - 2.0**32)),
    Garble("up by 2^32, stays", _is_counter, _stays),
    Garble("up by 10^14 and more, stays", _is_counter, _leaps),
    Garble("reset from above 2^31", lambda k, v: _is_counter(k, v) and bool(v[0] > 2**31 and v[-1] < 2**32), _reset),
    Garble("more than came", lambda k, _: k.metric in _DROPS[:1], _more_than_came),
    Garble("memory up by 2^32 and back", lambda k, _: "memory.usage" in k.metric, _lone(lambda was: was + 2.0**32)),
    Garble("memory all bits set", lambda k, _: "system.memory.us" in k.metric, _lone(lambda _: 2.0**64)),
    Garble("memory available 2^64", lambda k, _: "available" in k.metric, _lone(lambda _: 2.0**64)),
    Garble("CPU at 4,295 %", lambda k, _: "utilization" in k.metric, _lone(lambda _: 42.94967295)),
    Garble("CPU at -1", lambda k, _: "utilization" in k.metric, _lone(lambda _: -1.0)),
    Garble("uptime 0 and back", lambda k, _: "uptime" in k.metric, _lone(lambda _: 0.0)),
    Garble("uptime up by 497 days", lambda k, _: "uptime" in k.metric, _lone(lambda was: was + 2.0**32 / 100)),
    Garble("rate of 10^15", lambda k, _: k.metric == _RATE, _lone(lambda _: 1e15)),
    Garble("rate up by 2^32", lambda k, _: k.metric == _RATE, _lone(lambda was: was + 2.0**32)),
)


def garbled(night: Night, only: str = "") -> tuple[str, ...]:
    """The names of what was done to one to three readings of a night, never twice to one series."""
    rng = night.rng
    ways = [garble for garble in GARBLES if only in garble.name]
    done: dict[Key, str] = {}
    for _ in range(int(rng.integers(1, 4))):
        garble = ways[int(rng.integers(len(ways)))]
        keys = [key for key, value in night.value.items() if key not in done and garble.befalls(key, value)]
        if not keys:
            continue
        key = keys[int(rng.integers(len(keys)))]
        value = night.value[key].copy()
        low = 1 if "to 0" in garble.name or "reset" in garble.name or "down" in garble.name else 0
        garble.changes(value, int(rng.integers(low, value.size)), rng)
        night.value[key], done[key] = value, garble.name
    return tuple(done.values())


# --- what was lost -------------------------------------------------------------------------------------------------


def burst(night: Night) -> str:
    """Packets are lost at one time, as the device counts it or the generator; returns what was done."""
    rng, n = night.rng, night.at_s.size
    place = int(rng.integers(1, n))
    sent = np.diff(night.of("load.tx.packets"))[place - 1]
    if rng.random() < 0.7:
        metric = str(rng.choice(_DROPS))
        (name,) = night.objects(metric)
        lost = float(np.ceil(np.exp(rng.uniform(0.0, np.log(0.9 * sent)))))
        night.of(metric, name)[place:] += lost
        return "drops, " + ("1 to 99" if lost < 100 else "100 to 9,999" if lost < 10_000 else "10,000 and more")
    whole = float(night.of("load.tx.packets")[-1])
    lost = float(np.round(min(sent * 0.95, whole * rng.uniform(0.004, 0.02))))
    first = place
    while lost > 0 and place < n:  # over as many polls as it takes
        now = min(lost, float(np.round(sent * 0.5)))
        night.of("load.rx.packets")[place:] -= now
        lost, place = lost - now, place + 1
    return f"loss of the generator's packets over {'1 poll' if place - first == 1 else 'some polls'}"


@dataclass(frozen=True, slots=True)
class Tried:
    """One night and what came of it; ``lost`` is "" where the device was well."""

    seed: int
    ways: tuple[str, ...]
    lost: str
    verdict: str
    named: int
    reason: str
    seconds: float


def drawn(seed: int, only: str = "") -> tuple[Night, tuple[str, ...], str]:
    """A night, in which ways its readings are garbled, and what was really lost."""
    night = well(seed)
    lost = burst(night) if seed % 2 else ""
    ways = garbled(night, only) if not lost or seed % 4 == 1 else ()
    return night, ways, lost


def tried(seed: int, only: str = "", keep: str = "") -> Tried:
    """One night, judged by the command."""
    night, ways, lost = drawn(seed, only)
    began = time.process_time()
    with contextlib.ExitStack() as stack:
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="soakwatch-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        write_run(night, folder / "record")
        out, heard = folder / "verdict.json", io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            code = command(["judge", str(folder / "record"), "--json", str(out)])
        if code not in {0, 1, 3}:
            raise RuntimeError(f"seed {seed}: exit code {code}: {heard.getvalue()[-400:]}")
        document = json.loads(out.read_text(encoding="utf-8"))
    aside, reason, verdict = len(document["set_aside"]), str(document["reason"]), str(document["verdict"])
    deciding = [f"{f['rule']}: {f['reason']}" for f in document["findings"] if f["outcome"] == verdict]
    text = deciding[0] if verdict != "pass" and deciding else reason
    return Tried(seed, ways, lost, verdict, aside, text, time.process_time() - began)


def _rows(rows: Sequence[Tried], names: Callable[[Tried], Sequence[str]]) -> Iterator[Sequence[str]]:
    for name in sorted({name for row in rows for name in names(row)}):
        own = [row for row in rows if name in names(row)]
        count = [sum(row.verdict == verdict for row in own) for verdict in ("fail", "inconclusive", "pass")]
        yield (name, str(len(own)), *map(str, count), str(sum(row.named > 0 for row in own)))


def main() -> None:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--kind", default="", help="garble only in the ways whose name holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="a line for every night that was judged wrong")
    parser.add_argument("--keep", default="", help="folder that keeps what was judged (for one night)")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.nights)
    rows: list[Tried] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(tried, seed, options.kind, options.keep) for seed in seeds]
        for number, future in enumerate(futures):
            rows.append(future.result())
            if number % 250 == 249:
                print(f"{number + 1} of {len(seeds)}", file=sys.stderr, flush=True)
    healthy, lossy = [row for row in rows if not row.lost], [row for row in rows if row.lost]
    fails, caught = sum(row.verdict == "fail" for row in healthy), sum(row.verdict == "fail" for row in lossy)
    print(f"garbled nights of a device that is well that FAIL: {fails} of {len(healthy)} (aim 0)")
    print(f"nights with a real burst that FAIL: {caught} of {len(lossy)} (aim 99 %)\n")
    head = ("", "nights", "FAIL", "INCONCLUSIVE", "PASS", "set aside")
    print(table(head, _rows(healthy, lambda row: row.ways)))
    print()
    print(table(head, _rows(lossy, lambda row: (row.lost + (", and garbled readings" if row.ways else ""),))))
    print(f"\n{sum(row.seconds for row in rows):.0f} s CPU for {len(rows)} nights")
    if options.each:
        for row in rows:
            if (row.verdict == "fail") != bool(row.lost):
                print(f"{row.seed} {row.lost or 'well'} ({', '.join(row.ways)}): {row.verdict}: {row.reason[:400]}")


if __name__ == "__main__":
    main()
