"""Files that belong to a run: what scripts said, and the evidence that hooks brought. Kept compressed, and bounded."""

from __future__ import annotations

import re
import sqlite3
import zlib

from soakwatch.record._rows import storable
from soakwatch.record.model import Artifact, ArtifactEntry

MAX_BYTES = 64 << 20
"""All artifacts of a record together, compressed: evidence must not fill the disk that the readings need."""
MAX_OUTPUTS = 5000
"""Maximum number of outputs of scripts and hooks. They get at most half of ``MAX_BYTES``; the rest is for evidence."""
MAX_NAME_LENGTH = 200
_OUTPUTS = frozenset({"script", "hook"})
_ZLIB_LEVEL = 1  # core files are mostly zeros: a higher level costs seconds and brings little
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@=-]+")


def artifact_name(*parts: str) -> str:
    """Join parts with slashes to a name that is a relative path on every file system and never leads out of its folder.

    >>> artifact_name("capture", "fw/1", "../show tech")
    'capture/fw_1/show_tech'
    """
    safe = [_UNSAFE.sub("_", part).strip("_-.")[:80].strip("_-.") or "x" for part in parts]
    return "/".join(safe)[:MAX_NAME_LENGTH].rstrip("/_-.")


def keep(sql: sqlite3.Connection, artifact: Artifact, packed: bytes) -> bool:
    """Write an artifact, in place of one of the same name. Returns False and changes nothing if there is no room."""
    name = storable(artifact.name)
    others, number = sql.execute(
        "SELECT coalesce(sum(length(data)), 0), count(*) FROM artifact WHERE name<>?", (name,)
    ).fetchone()
    output = artifact.kind in _OUTPUTS
    if others + len(packed) > (MAX_BYTES // 2 if output else MAX_BYTES) or (output and number >= MAX_OUTPUTS):
        return False
    sql.execute(
        "INSERT OR REPLACE INTO artifact (name, media, data, time_ns, kind, about, size) VALUES (?,?,?,?,?,?,?)",
        (name, artifact.media, packed, artifact.time_ns, artifact.kind, storable(artifact.about), len(artifact.data)),
    )
    return True


def packed(data: bytes) -> bytes:
    """The bytes, compressed as the record keeps them."""
    return zlib.compress(data, _ZLIB_LEVEL)


def entries(sql: sqlite3.Connection) -> tuple[ArtifactEntry, ...]:
    """All artifacts by time and name, without their bytes."""
    rows = sql.execute(
        "SELECT name, media, size, time_ns, kind, about FROM artifact ORDER BY coalesce(time_ns, 0), name"
    ).fetchall()
    return tuple(ArtifactEntry(*row) for row in rows)


def read(sql: sqlite3.Connection, name: str) -> Artifact | None:
    """One artifact with its bytes; None if there is none of this name. Raises ValueError for damaged bytes."""
    row = sql.execute(
        "SELECT name, media, data, time_ns, kind, about, size FROM artifact WHERE name=?", (storable(name),)
    ).fetchone()
    if row is None:
        return None
    *_, size = row
    return Artifact(row[0], row[1], _unpacked(row[2], size), *row[3:6])


def _unpacked(data: bytes, size: int) -> bytes:
    inflating = zlib.decompressobj()
    try:
        unpacked = inflating.decompress(data, size + 1)  # at most one byte more than the record says
    except zlib.error:
        unpacked = b""
    if len(unpacked) != size:
        raise ValueError("an artifact cannot be unpacked")
    return unpacked
