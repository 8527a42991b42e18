"""Small records of every schema that was released, kept so that every later version can open and judge them.

    .venv/bin/python -m tests.kept_records

writes those of the installed version and its schema: three nights in virtual time (15 minutes, about 25 kB each),
one healthy, one of a device that loses packets and whose process restarts, one whose monitor was killed. A release that
changed the schema adds its own (changes/README.md); what is kept is never written again.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from soakwatch.record import RecordView
from soakwatch.record._schema import SCHEMA_VERSION
from soakwatch_model.finding import Finding, Outcome
from soakwatch_testing.night.faults import Fault, Kind, Night
from soakwatch_testing.night.lived import live

KEPT = Path(__file__).parent / "collector" / "record" / "kept"
_NIGHTS: Mapping[str, tuple[Fault, ...]] = {
    "healthy": (),
    "failing": (
        Fault(200.0, 400.0, Kind.LOSS, "dut-1", size=0.05),
        Fault(500.0, 500.0, Kind.RESTART, "dut-1"),
    ),
    "killed": (Fault(300.0, 300.0, Kind.KILL, size=240.0),),
}


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record in the tests: the version and schema that wrote it, and what its verdict was."""

    name: str
    version: str
    schema: int
    verdict: str
    failing: tuple[str, ...]
    """Rule, target, metric and object of each finding that fails, in order."""
    digest: str

    @property
    def file(self) -> Path:
        """Where it is, compressed."""
        return KEPT / self.version / f"{self.name}.sqlite.xz"

    def unpack(self, folder: Path) -> Path:
        """Makes the folder of its run, as it was; returns it."""
        run = folder / f"{self.version}-{self.name}"
        run.mkdir(parents=True)
        (run / "record.sqlite").write_bytes(lzma.decompress(self.file.read_bytes()))
        return run


def kept_records() -> list[KeptRecord]:
    """All that are kept, oldest version first."""
    lists = sorted(KEPT.glob("*/verdicts.json"))
    return [
        KeptRecord(**{**entry, "failing": tuple(entry["failing"])})
        for file in lists
        for entry in json.loads(file.read_text("utf-8"))
    ]


def failing(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    """The findings that fail, each in one line."""
    failed = (finding for finding in findings if finding.outcome is Outcome.FAIL)
    return tuple(sorted(" ".join((f.rule, f.target, f.metric, f.object)).strip() for f in failed))


def _keep(name: str, faults: tuple[Fault, ...], folder: Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        lived = live(Night(7, 0.25, 2, faults), keep=Path(place), reports=False)
        (run,) = [path.parent for path in sorted(Path(place).glob("night/life-*/night/record.sqlite"))][-1:]
        data = (run / "record.sqlite").read_bytes()
        with RecordView.open(run) as view:
            failed = failing(tuple(view.findings(live=False)))
    (folder / f"{name}.sqlite.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    return {
        "name": name,
        "version": folder.name,
        "schema": SCHEMA_VERSION,
        "verdict": lived.outcome,
        "failing": failed,
        "digest": lived.digest.split()[1],
    }


def main() -> int:
    """Keeps the records of the installed version. Returns 1 if those of its schema are kept already."""
    if SCHEMA_VERSION in {record.schema for record in kept_records()}:
        print(f"records of schema {SCHEMA_VERSION} are kept already: only a new schema has new ones", file=sys.stderr)
        return 1
    folder = KEPT / version("soakwatch")
    if folder.exists():  # that version was not the last with its schema
        folder = folder.with_name(f"{folder.name}-schema{SCHEMA_VERSION}")
    folder.mkdir(parents=True)
    entries = [_keep(name, faults, folder) for name, faults in _NIGHTS.items()]
    (folder / "verdicts.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
