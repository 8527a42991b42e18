"""TRex messages: plain JSON, or compressed behind a header with a magic number and the uncompressed length.

Source: the server's zip layer, two 32-bit numbers in network order, then a zlib stream.
"""

from __future__ import annotations

import json
import struct
import zlib

MAGIC = 0xABE85CEA
MAX_MESSAGE_BYTES = 16 * 2**20
"""Maximum bytes of a message; a server of 16 ports and 1152 flows needs less than a tenth."""
_HEADER = struct.Struct(">II")


class BadFrameError(Exception):
    """An unreadable message; the reason is one sentence."""


def unpack(data: bytes) -> object:
    """The JSON value of a message of at most ``MAX_MESSAGE_BYTES``. Raises BadFrameError for anything else.

    >>> unpack(b'{"a": 1}'), unpack(pack(b'[1, 2]'))
    ({'a': 1}, [1, 2])
    """
    text = _inflated(data) if data[:4] == MAGIC.to_bytes(4, "big") else data
    if len(text) > MAX_MESSAGE_BYTES:
        raise BadFrameError(f"a message of more than {MAX_MESSAGE_BYTES >> 20} MiB")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):  # bad UTF-8 is a ValueError as well
        raise BadFrameError(f"not JSON: {text[:60]!r}") from None
    return value


def pack(text: bytes) -> bytes:
    """Compress a JSON text to a message."""
    return _HEADER.pack(MAGIC, len(text)) + zlib.compress(text)


def _inflated(data: bytes) -> bytes:
    if len(data) < _HEADER.size:
        raise BadFrameError("a compressed message that is cut off in its header")
    length = _HEADER.unpack_from(data)[1]
    if length > MAX_MESSAGE_BYTES:
        raise BadFrameError(f"a compressed message of {length} bytes, more than {MAX_MESSAGE_BYTES >> 20} MiB")
    expander = zlib.decompressobj()
    try:
        text = expander.decompress(data[_HEADER.size :], length + 1)
    except zlib.error:
        raise BadFrameError("a compressed message that cannot be expanded") from None
    if len(text) != length or not expander.eof:
        raise BadFrameError(f"a compressed message that does not have the announced {length} bytes")
    return text
