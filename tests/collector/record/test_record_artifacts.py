"""Files that belong to a run: kept compressed, bounded together, listed without their bytes, and safe to write out."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from soakwatch.core.errors import RecordError
from soakwatch.record import Artifact, ArtifactEntry, Record, RecordView, artifact_name
from soakwatch.record import _artifacts as artifacts
from soakwatch.record._artifacts import MAX_BYTES, MAX_NAME_LENGTH
from soakwatch_model.event import Event

T0 = 1_700_000_000 * 10**9


def test_an_artifact_comes_back_with_what_it_is_about(tmp_path: Path) -> None:
    """Bytes, time, kind and subject come back; the list of them does without the bytes; a name is taken once."""
    text = b"core dumped\n" * 10_000
    with Record.create(tmp_path) as record:
        assert record.keep_artifact(Artifact("scripts/b.txt", "text/plain", text, T0 + 1, "script", "failover"))
        assert record.keep_artifact(Artifact("a.bin", "application/octet-stream", b"", T0, "capture", "hang dut"))
        assert record.keep_artifact(Artifact("scripts/b.txt", "text/plain", text[:12], T0 + 2, "script", "failover"))
        with RecordView.open(tmp_path) as view:
            assert view.artifact_entries() == (
                ArtifactEntry("a.bin", "application/octet-stream", 0, T0, "capture", "hang dut"),
                ArtifactEntry("scripts/b.txt", "text/plain", 12, T0 + 2, "script", "failover"),
            )
            assert view.artifact("scripts/b.txt").data == text[:12]
            assert [artifact.data for artifact in view.artifacts()] == [b"", text[:12]]
            with pytest.raises(RecordError, match="no artifact 'c'"):
                view.artifact("c")


@pytest.mark.slow
def test_all_artifacts_together_are_bounded(tmp_path: Path) -> None:
    """What would make them too large is refused, and what is there stays; a replacement makes its own room."""
    noise = random.Random(5).randbytes(MAX_BYTES // 2)
    with Record.create(tmp_path) as record:
        assert record.keep_artifact(Artifact("one", "x/y", noise))
        assert not record.keep_artifact(Artifact("two", "x/y", noise))
        assert record.keep_artifact(Artifact("one", "x/y", noise))
        assert record.keep_artifact(Artifact("two", "x/y", noise[:1000]))
        with RecordView.open(tmp_path) as view:
            assert [(entry.name, entry.size) for entry in view.artifact_entries()] == [
                ("one", MAX_BYTES // 2),
                ("two", 1000),
            ]


@pytest.mark.slow
def test_outputs_leave_room_for_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that chatters every second fills neither the half that is kept for evidence, nor the list."""
    noise = random.Random(6).randbytes(MAX_BYTES // 4)
    monkeypatch.setattr(artifacts, "MAX_OUTPUTS", 3)
    with Record.create(tmp_path) as record:
        kept = [record.keep_artifact(Artifact(f"s{n}", "x/y", noise, T0, "script", "")) for n in range(2)]
        assert kept == [True, False]
        kept = [record.keep_artifact(Artifact(f"t{n}", "x/y", b"", T0, "hook", "")) for n in range(3)]
        assert kept == [True, True, False]
        assert record.keep_artifact(Artifact("t0", "x/y", b"again", T0, "hook", ""))
        kept = [record.keep_artifact(Artifact(f"c{n}", "x/y", noise, T0, "capture", "")) for n in range(3)]
        assert kept == [True, True, False]


def test_an_artifact_that_is_damaged_is_reported(tmp_path: Path) -> None:
    """Bytes that cannot be unpacked, or would be more than they say, are one sentence and never memory without end."""
    with Record.create(tmp_path) as record:
        record.keep_artifact(Artifact("bomb", "x/y", bytes(1 << 20)))
        record.keep_artifact(Artifact("torn", "x/y", b"whole"))
    connection = sqlite3.connect(tmp_path / "record.sqlite")
    connection.execute("UPDATE artifact SET size=10 WHERE name='bomb'")
    connection.execute("UPDATE artifact SET data=x'00' WHERE name='torn'")
    connection.commit()
    connection.close()
    with RecordView.open(tmp_path) as view:
        for name in ("bomb", "torn"):
            with pytest.raises(RecordError, match="damaged"):
                view.artifact(name)


def test_the_result_of_an_event_is_kept_with_it(tmp_path: Path) -> None:
    """An event's end and later details are added; what it said before stays."""
    with Record.create(tmp_path) as record:
        number = record.add_event("dut", Event("failover", "dut", "", T0, None, {"ticket": "7"}), "plan")
        record.end_event(number, T0 + 5, {"failed": "exit code 3"})
        record.end_event(number, None, {"more": "x"})
        with RecordView.open(tmp_path) as view:
            (stored,) = view.events()
    assert stored.event.end_ns == T0 + 5
    assert stored.event.detail == {"ticket": "7", "failed": "exit code 3", "more": "x"}


def test_names_stay_below_the_folder_that_they_are_written_into() -> None:
    """Whatever a device or a plan says, a name is a short relative path without a way up."""
    chance = random.Random(11)
    for _ in range(500):
        parts = [
            "".join(chance.choices("a./\\ ~\0é$-", k=chance.randrange(120))) for _ in range(1 + chance.randrange(4))
        ]
        name = artifact_name(*parts)
        assert 0 < len(name) <= MAX_NAME_LENGTH
        assert not name.startswith("/")
        assert not {"..", ".", ""} & set(name.split("/"))
