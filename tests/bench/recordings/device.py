"""One recorded device: a responder that plays it, the poller that polls it over UDP, and the comparison."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from tests.bench.recordings.compare import Difference, Polled, Seen, Tally, compare
from tests.bench.recordings.expected import BadExpectationError, load_expected
from tests.bench.recordings.reasons import Trail

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Facts, SourceContext, SourceError
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_testing.snmp_cells import Cell, Name, dotted
from soakwatch_testing.snmp_recording import BadRecordingError, load_recording
from soakwatch_testing.snmp_responder import responder

_NOW_NS = 1_800_000_000 * 10**9


@dataclass(frozen=True, slots=True)
class Pair:
    """A recording and what is expected of it."""

    name: str
    recording: Path
    expectation: Path


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one device. ``trouble`` says why nothing could be compared, empty if it could."""

    name: str
    system: str
    rows: int
    profile: str
    why: str
    tallies: Mapping[str, Tally]
    faults: tuple[str, ...]
    seconds: float
    trouble: str = ""

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All of them."""
        return tuple(difference for tally in self.tallies.values() for difference in tally.differences)


def run_device(pair: Pair, limit_s: float, engine: str = "gufo") -> Result:
    """Replay one device, within a time, through one of the SNMP libraries.

    Never raises for what is in the files or goes wrong with the device.
    """
    began = time.monotonic()
    system, rows = "?", 0
    tallies: dict[str, Tally] = {}

    def failed(trouble: str) -> Result:
        return Result(pair.name, system, rows, "", "", tallies, (), time.monotonic() - began, trouble)

    try:
        expected = load_expected(pair.expectation)
        system = expected.system
        sizes = {"processors": expected.processors, "mempools": expected.pools, "ports": expected.ports}
        # A device that fails has nothing of what is expected of it.
        tallies = {part: Tally(0, len(wanted), 0, ()) for part, wanted in sizes.items()}
        recording = load_recording(pair.recording)
        rows = len(recording.rows)
        with _alarm(limit_s):
            facts, polled, faults = _poll_device(recording.rows, limit_s, engine)
    except (BadExpectationError, BadRecordingError) as error:
        return failed(str(error))
    except SourceError as error:
        return failed(f"the poll failed: {error}")
    except PlanError as error:
        return failed(f"a profile cannot be used: {str(error).splitlines()[0]}")
    except TimeoutError:
        return failed(f"it took longer than {limit_s:g} s")
    except Exception as error:  # noqa: BLE001 - one device must not end the others
        return failed(f"{type(error).__name__}: {error}")
    tallies = compare(expected, polled)
    why = facts.identity.get("profile chosen by", "")
    return Result(pair.name, system, rows, polled.profile, why, tallies, faults, time.monotonic() - began)


@contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """A time limit that holds even where the loop hangs in a computation."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _poll_device(rows: Mapping[Name, Cell], limit_s: float, engine: str) -> tuple[Facts, Polled, tuple[str, ...]]:
    with responder(rows) as agent, TemporaryDirectory() as folder:
        facts, seen, faults, trail = asyncio.run(_ask(agent.address, Path(folder), limit_s, engine))
    recorded = {dotted(name): cell.value for name, cell in rows.items()}
    return facts, Polled(facts.identity.get("profile", "?"), seen, recorded, trail), tuple(faults)


async def _ask(
    address: tuple[str, int], folder: Path, limit_s: float, engine: str
) -> tuple[Facts, tuple[Seen, ...], list[str], Trail]:
    """One poll of the poller ``snmp``, as a plan would have it, and where its samples came from."""
    keys = {"host": address[0], "port": address[1], "interval": "1h", "timeout": f"{limit_s:g}s", "engine": engine}
    config = Config.model_validate(keys)
    site = SourceContext("recorded", "dut", (), None, folder, lambda: _NOW_NS, 3600.0)
    async with AsyncExitStack() as stack:
        poller = await start(config, site, stack)
        answer = await poller.poll(_NOW_NS)
        facts = poller.facts()
        # Where a sample came from is known to the survey only.
        survey = poller._reader.survey if poller._reader is not None else None
    oids: dict[tuple[str, str], frozenset[str]] = {}
    for table in survey.tables if survey is not None else ():
        for want in table.wants:
            oids.setdefault((want.line.metric, want.object), frozenset(want.oids))
        for fold in table.folds:
            oids.setdefault((fold.line.metric, fold.object), frozenset(oid for row in fold.rows for oid in row.oids))
    seen = tuple(
        Seen(sample.metric, sample.object, sample.value, oids.get((sample.metric, sample.object), frozenset()))
        for sample in answer.samples
    )
    refused = {
        oid: f"{fault.metric} {fault.object}: {fault.text}"
        for fault in answer.faults
        for oid in oids.get((fault.metric, fault.object), ())
    }
    trail = Trail(
        survey.profile if survey is not None else None,
        frozenset(table.group.name for table in survey.tables) if survey is not None else frozenset(),
        {oid: f"{each.metric} {each.object}".strip() for each in seen for oid in each.oids},
        refused,
    )
    return facts, seen, [f"{fault.metric} {fault.object}: {fault.text}" for fault in answer.faults], trail
