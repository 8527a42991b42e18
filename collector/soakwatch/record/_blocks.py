"""The codec of blocks: int64, uint64 or float64 arrays as pcodec streams, bit for bit, with a checksum.

pcodec was chosen by measurement (``tests/bench/record.py`` prints the table). Two things are done before it: floats
that are whole numbers go as integers, and floats with few distinct values (shares k/N of a tick count) go as a table
and indices into it; each is used only where every bit comes back.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray
from pcodec import ChunkConfig, standalone

from soakwatch.record.model import Values

_HEAD = struct.Struct("<cI")  # how it is packed, CRC-32 of that and of what follows
_LENGTH = struct.Struct("<I")
_DTYPES = {b"q": np.int64, b"Q": np.uint64, b"d": np.float64}
_LEVEL = 6  # 8 costs twice the CPU for less than 2 % (tests/bench/record.py)
_WHOLE = float(2**53)
_TABLE_SHARE = 3  # a table must be at most a third of the values


def encode(values: Values) -> bytes:
    """One block of int64, uint64 or float64 values, shape (n,); the dtype comes back as well."""
    kind = values.dtype.kind
    if kind == "i":
        return _framed(b"q", _pco(values))
    if kind == "u":
        return _framed(b"Q", _pco(values))
    floats = np.ascontiguousarray(values, dtype=np.float64)
    whole = _as_whole(floats)
    if whole is not None:
        return _framed(b"w", _pco(whole))
    plain = b"d", _pco(floats)
    bits = np.ascontiguousarray(floats).view(np.uint64)
    table, index = np.unique(bits, return_inverse=True)
    if table.size * _TABLE_SHARE <= bits.size:
        head = _pco(table.view(np.float64))
        tabled = b"t", _LENGTH.pack(len(head)) + head + _pco(index.astype(np.uint32))
        return _framed(*min(plain, tabled, key=lambda packed: len(packed[1])))
    return _framed(*plain)


def decode(block: bytes) -> Values:
    """The values of a block, with the dtype they had. Raises ValueError for bytes that are not what was encoded."""
    if len(block) < _HEAD.size:
        raise ValueError("a block is cut short")
    kind, checksum = _HEAD.unpack_from(block)
    body = block[_HEAD.size :]
    if _checksum(kind, body) != checksum:
        raise ValueError("the checksum of a block is wrong")
    if kind == b"w":
        return np.asarray(_unpco(body), dtype=np.float64)
    if kind == b"t":
        (length,) = _LENGTH.unpack_from(body)
        table = _unpco(body[_LENGTH.size : _LENGTH.size + length])
        index = _unpco(body[_LENGTH.size + length :])
        return np.asarray(table[index.astype(np.intp)], dtype=np.float64)
    if kind not in _DTYPES:
        raise ValueError(f"a block of unknown kind {kind!r}")
    plain = _unpco(body)
    return plain if plain.size else np.empty(0, _DTYPES[kind])  # an empty stream has no type


def decode_ints(block: bytes) -> NDArray[np.int64]:
    """The values of a block of int64."""
    values = decode(block)
    if values.dtype != np.int64:
        raise ValueError("a block of times holds something else")
    return values.astype(np.int64, copy=False)


def _as_whole(floats: NDArray[np.float64]) -> NDArray[np.int64] | None:
    if not bool((np.abs(floats) <= _WHOLE).all()):
        return None
    whole = floats.astype(np.int64)
    same = whole.astype(np.float64).view(np.uint64) == np.ascontiguousarray(floats).view(np.uint64)  # not for -0.0
    return whole if bool(same.all()) else None


def _framed(kind: bytes, body: bytes) -> bytes:
    return _HEAD.pack(kind, _checksum(kind, body)) + body


def _checksum(kind: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(kind))


def _pco(values: NDArray[np.generic]) -> bytes:
    packed: bytes = standalone.simple_compress(np.ascontiguousarray(values), ChunkConfig(compression_level=_LEVEL))
    return packed


def _unpco(packed: bytes) -> Values:
    try:
        values: Values | None = standalone.simple_decompress(packed)
    except RuntimeError as error:
        raise ValueError(f"a block cannot be unpacked: {error}") from error
    return np.empty(0) if values is None else values
