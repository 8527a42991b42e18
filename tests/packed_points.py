"""What ``soakwatch.report.plot`` packs for a browser, read back as ``figure.js`` reads it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray


def numbers_of(text: str, kind: str) -> NDArray[np.generic]:
    """Numbers of a kind: bytes of one weight stand together, deflated, in base64."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS), np.uint8)
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(planes.reshape(size, planes.size // size).T).view(kind).ravel()


def points_of(held: Mapping[str, object]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Times and values of the points of a line."""
    begin, unit, text = cast("tuple[float | None, int, str]", held["time"])
    packed = numbers_of(text, "<f8" if begin is None else "<u4").astype(np.float64)
    time = packed if begin is None else begin + unit * np.cumsum(packed)
    return time, numbers_of(str(held["value"]), "<f4").astype(np.float32)
