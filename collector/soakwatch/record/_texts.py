"""Texts as a record keeps them: long ones compressed. The findings of one judging are one text, a line each.

A device has hundreds of findings that differ in a few words and numbers: together they take a thirtieth of their bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

Stored = str | bytes
"""A text in a cell of the record: as it is, or compressed."""
_LONG = 500  # characters; what is shorter stays as it is
_MAX_BYTES = 1 << 28
"""Of one text: a damaged or made-up record must not fill the memory."""
_QUICK = 1  # of LZMA: 2 to 9 take up to eight times as long for 10 % less


def stored(text: str) -> Stored:
    """A text as it is kept."""
    return zlib.compress(text.encode()) if len(text) > _LONG else text


def text_of(kept: Stored) -> str:
    """The text of a cell. Raises ValueError if it is damaged.

    >>> text_of(stored("a" * 1000)) == "a" * 1000, text_of("a")
    (True, 'a')
    """
    if isinstance(kept, str):
        return kept
    inflating = zlib.decompressobj()
    try:
        text = inflating.decompress(kept, _MAX_BYTES)
    except (zlib.error, TypeError):
        raise ValueError("a text cannot be unpacked") from None
    if not inflating.eof or inflating.unused_data:
        raise ValueError("a text cannot be unpacked, or is longer than 256 MB")
    return text.decode()


def stored_lines(lines: Sequence[str]) -> list[bytes]:
    """Lines as one cell, or none where there are none."""
    import lzma  # a third smaller than zlib at twice the time; most processes write no findings

    return [lzma.compress("\n".join(lines).encode(), preset=_QUICK)] if lines else []


def lines_of(kept: Stored) -> Iterator[str]:
    """The lines of a cell; a text that is not compressed is one of its own. Raises ValueError if it is damaged."""
    if isinstance(kept, str):
        return iter([kept])
    import lzma

    expanding = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 26)
    try:
        text = expanding.decompress(kept, _MAX_BYTES)
    except (lzma.LZMAError, TypeError):
        raise ValueError("findings cannot be unpacked") from None
    if not expanding.eof or expanding.unused_data:
        raise ValueError("findings cannot be unpacked, or are longer than 256 MB")
    return iter(text.decode().split("\n"))
