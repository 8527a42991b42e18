"""A baseline imported from an earlier run: readings of its baseline phase, few enough to be copied into another record.

With the copy a mailed record is judged alike without the earlier one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from soakwatch.core.errors import RecordError
from soakwatch.judge.baseline import MAX_SERIES, META, BaselineSnapshot, baseline_window, levels_of, metrics_of
from soakwatch.plan import Plan
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record.meta import EARLIER, decode, decode_ints, encode, setup_of
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule

SERIES_META = "baseline.series"
"""Record meta: the imported readings."""
MAX_SAMPLES = 400
"""Per series: evenly picked readings, not means, which would be less noisy than the device."""
_MAX_BYTES = 64 << 20
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ImportedBaseline:
    """What is imported from an earlier run, and warnings about what is not."""

    run: str
    window: Window
    series: tuple[Series, ...]
    left_out: int
    warnings: tuple[str, ...]
    setup: str  # of the earlier run: the report says what changed since


def import_baseline(folder: Path, plan: Plan, rules: Iterable[Rule]) -> ImportedBaseline:
    """The baseline of the run in ``folder``, for a run of ``plan`` judged by these rules.

    Raises RecordError if it cannot be read or has no baseline phase.
    """
    with RecordView.open(folder) as view:
        run = view.path.parent.name or view.meta("run") or "run"
        window = baseline_window(view.phases())
        if window is None:
            raise RecordError(f"the run {run} has no baseline phase: name one that has, or leave baseline out")
        names = {target.name for target in plan.targets}
        keys = [key for key in sorted(view.keys(metrics_of(rules))) if key.target in names]
        read = [_thinned(view.series(key, window.begin_ns, window.end_ns)) for key in keys[:MAX_SERIES]]
        missing = sorted({t.name for t in plan.targets if t.role == DUT} - view.roles().keys())
        setup = json.dumps(setup_of(view, run))
    warnings = [f"the baseline of {run} knows no target {name}: it is another device" for name in missing]
    kept = tuple(series for series in read if len(series))
    if not kept:
        warnings.append(f"the baseline of {run} has no samples that the rules of this plan use")
    return ImportedBaseline(run, window, kept, max(0, len(keys) - MAX_SERIES), tuple(warnings), setup)


def keep(record: Record, imported: ImportedBaseline) -> None:
    """Copy an imported baseline into the record of a starting run. Raises RecordError."""
    record.set_meta(SERIES_META, packed(imported.series))
    record.set_meta(EARLIER, imported.setup)
    record.set_meta(
        META, BaselineSnapshot(imported.run, imported.window, levels_of(imported.series), imported.left_out).text()
    )


def packed(series: Sequence[Series]) -> str:
    """Series as text: one line of JSON that names them, then their times and readings as blocks of the record."""
    names, blocks = [], []
    for each in series:
        names.append([each.target, each.metric, each.object, each.trait.unit, each.trait.kind, each.cadence_s])
        blocks += [encode(each.time_ns), encode(each.value)]
    head = json.dumps(names).encode()
    body = b"".join(_LENGTH.pack(len(part)) + part for part in (head, *blocks))
    whole = zlib.compress(body, 1)
    return f"{hashlib.sha256(whole).hexdigest()}:{base64.b64encode(whole).decode()}"


def unpacked(text: str) -> Mapping[SeriesKey, Series]:
    """The inverse of ``packed``. Raises RecordError for anything else."""
    digest, _, encoded = text.partition(":")
    try:
        parts = _parts(_checked(base64.b64decode(encoded, validate=True), digest))
        names = json.loads(next(parts))
        series = {}
        for target, metric, object_, unit, kind, cadence_s in names:
            time_ns, value = decode_ints(next(parts)), decode(next(parts))
            trait = trait_of(metric, unit, kind)
            series[SeriesKey(target, metric, object_)] = Series(
                target, metric, object_, trait, time_ns, value, cadence_s
            )
    except (ValueError, LookupError, TypeError, StopIteration, struct.error, zlib.error, binascii.Error) as error:
        raise RecordError(f"the baseline that an earlier run lent is damaged: {type(error).__name__}") from None
    return series


def _checked(whole: bytes, digest: str) -> bytes:
    if hashlib.sha256(whole).hexdigest() != digest:
        raise ValueError("its hash is wrong")
    return zlib.decompressobj().decompress(whole, _MAX_BYTES)


def _parts(body: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(body):
        (length,) = _LENGTH.unpack_from(body, offset)
        offset += _LENGTH.size
        if offset + length > len(body):
            raise ValueError("it is cut short")
        yield body[offset : offset + length]
        offset += length


def _thinned(series: Series) -> Series:
    good = series.finite()
    if len(good) <= MAX_SAMPLES:
        return good
    kept = np.linspace(0, len(good) - 1, MAX_SAMPLES).astype(np.int64)
    return Series(
        good.target, good.metric, good.object, good.trait, good.time_ns[kept], good.value[kept], good.cadence_s
    )
