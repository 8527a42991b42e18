"""Opens tables (plain, gzip, standard input), detects their format, and reads them in chunks of lines."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.tables.cells import MISSING, numbers
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.plain_lines import MAX_LINE, split_plainly
from soakwatch.sources.tables.sysbench import as_table, is_sysbench
from soakwatch.sources.tables.times import looks_like_time

STDIN = "-"
CHUNK_LINES = 20_000
_SNIFFED = 60
_BLOCK = 1 << 20  # characters
_DELIMITERS = "\t;|,"
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d+\.\d+\s*")


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some lines of a table: their numbers in the file, shape (n,), and the cells by column."""

    line: NDArray[np.int64]
    cells: tuple[Sequence[str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An open table: ``columns`` are its headers, or ``column 1`` and so on if the file has none."""

    name: str
    columns: tuple[str, ...]
    decimal: str
    sample: tuple[Sequence[str], ...]  # the cells of the first lines, by column
    chunks: Iterator[Chunk]
    notes: tuple[str, ...]
    delimiter: str


@contextmanager
def opened(path: str, delimiter: str | None = None, decimal: str | None = None) -> Iterator[Table]:
    """Opens the table in a file, or ``-`` for standard input. Raises DataError."""
    name = "standard input" if path == STDIN else path
    with ExitStack() as stack:
        try:
            binary = sys.stdin.buffer if path == STDIN else stack.enter_context(Path(path).open("rb"))
            text = stack.enter_context(_text(binary, name))
            yield _table(text, name, delimiter, decimal)
        except FileNotFoundError:
            raise DataError(f"{name}: no such file") from None
        except (IsADirectoryError, PermissionError) as error:
            raise DataError(f"{name}: {(error.strerror or 'cannot be read').lower()}") from None
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(f"{name}: the gzip file is damaged or truncated: copy it again") from None


def table_in(text: io.TextIOBase, name: str, delimiter: str | None = None, decimal: str | None = None) -> Table:
    """The table in an open text. Raises DataError."""
    return _table(text, name, delimiter, decimal)


@contextmanager
def _text(binary: IO[bytes], name: str) -> Iterator[io.TextIOBase]:
    with ExitStack() as stack:
        buffered = _peekable(binary)
        if buffered is not binary:
            stack.callback(buffered.detach)
        if buffered.peek(2)[:2] == b"\x1f\x8b":
            buffered = io.BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=buffered)))
        head = buffered.peek(16)[:16]
        if head.startswith(b"SQLite format 3"):
            raise DataError(f"{name} is a record, not a table: judge it with 'soakwatch judge {name}'")
        if head.startswith(b"PK\x03\x04"):
            raise DataError(f"{name} is a zip or a spreadsheet: save it as CSV")
        wide = head[:2] in {b"\xff\xfe", b"\xfe\xff"}
        if not wide and b"\0" in buffered.peek(4096)[:4096]:
            raise DataError(f"{name} is not text: save it as CSV in UTF-8")
        text = io.TextIOWrapper(buffered, "utf-16" if wide else "utf-8-sig", errors="replace", newline="")
        stack.callback(text.detach)  # standard input must stay open
        yield text


def _peekable(binary: IO[bytes]) -> io.BufferedReader:
    return binary if isinstance(binary, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", binary))


class _Lines(Iterator[str]):
    """The lines of a text, one by one or in blocks; ``number`` is how many were read."""

    def __init__(self, name: str, readline: Callable[[], str], read: Callable[[], str]) -> None:
        self._name, self._readline, self._read = name, readline, read
        self._given_back, self._left = io.StringIO(), 0
        self.number = 0

    @classmethod
    def of(cls, text: io.TextIOBase, name: str) -> _Lines:
        """Those of an open text."""
        return cls(name, lambda: text.readline(MAX_LINE), lambda: text.read(_BLOCK))

    @classmethod
    def made(cls, lines: Iterator[str], name: str) -> _Lines:
        """Those that are made of others."""
        return cls(name, lambda: next(lines, ""), lambda: "".join(islice(lines, CHUNK_LINES)))

    def __next__(self) -> str:
        """The next line. Raises DataError for one over ``MAX_LINE`` characters."""
        line = self._given_back.readline(MAX_LINE) if self._left else self._readline()
        if not line:
            raise StopIteration
        self._left = max(0, self._left - len(line))
        self.number += 1
        if len(line) >= MAX_LINE:
            raise DataError(f"{self._name}:{self.number}: a line of more than {MAX_LINE} characters: not a table")
        return line

    def block(self) -> str:
        """The next lines, the last one whole, without counting them; "" at the end of the text."""
        block = (self._given_back.read() if self._left else "") + self._read()
        self._left = 0
        return block if not block or block.endswith("\n") else block + self._readline()

    def ahead(self) -> list[str]:
        """The next ``_SNIFFED`` lines, which are read once more."""
        some = list(islice(self, _SNIFFED))
        self.give_back("".join(some), 0)
        return some

    def give_back(self, text: str, number: int) -> None:
        """Lets these lines be read once more; ``number`` is that of the line before them."""
        self._given_back, self._left, self.number = io.StringIO(text, newline=""), len(text), number

    def are_left(self) -> bool:
        """Whether there are lines that were given back."""
        return self._left > 0


def _table(text: io.TextIOBase, name: str, delimiter: str | None, decimal: str | None) -> Table:
    lines = _Lines.of(text, name)
    first = lines.ahead()
    if not any(line.strip() for line in first):
        raise DataError(f"{name} is empty")
    if is_sysbench(first):
        lines = _Lines.made(as_table(lines), name)
        first = lines.ahead()
        if len(first) < 2:
            raise DataError(f"{name}: sysbench printed no interval: run it with --report-interval=1")
    delimiter = delimiter or _delimiter(first)
    sniffed: list[str] = []
    head = list(islice(_rows(_noted(lines, sniffed), name, delimiter), _SNIFFED))
    header, body, notes = _header(head, delimiter)
    if not body:
        raise DataError(f"{name} has a header but no lines below it")
    width = len(header) if header else max(len(row) for _, row in body)
    columns = tuple(_named(header or [f"column {index + 1}" for index in range(width)]))
    sample = tuple(zip_longest(*(_fitted(row, width) for _, row in body), fillvalue=""))
    if decimal is None:
        decimal = _decimal(sample, name, delimiter)
        if decimal == ",":
            notes = (*notes, f"{name}: the decimal sign is a comma (override with --decimal)")
    header_end = max((number for number, _ in head if number < body[0][0]), default=0)
    lines.give_back("".join(sniffed[header_end:]), header_end)
    return Table(name, columns, decimal, sample, _block_chunks(lines, name, delimiter, width), notes, delimiter)


def _noted(lines: Iterator[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line


def _rows(
    lines: Iterator[str], name: str, delimiter: str, before: int = 0, goes_on: Callable[[], bool] = lambda: True
) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with the number of the line each ends on; ``before`` is that of the line before
    them."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")
    while goes_on():
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{name}:{before + reader.line_num}: {error}: is a quote missing?") from None
        if any(cell and not cell.isspace() for cell in row):
            yield before + reader.line_num, row


def _block_chunks(lines: _Lines, name: str, delimiter: str, width: int) -> Iterator[Chunk]:
    """The lines in blocks, each split at once if it is plain, else row by row."""
    while block := lines.block():
        before = lines.number
        found = split_plainly(block, delimiter, width)
        if found is None:
            lines.give_back(block, before)  # its last row may go on behind it
            yield from _chunks(_rows(lines, name, delimiter, before, lines.are_left), width)
        else:
            index, cells = found
            lines.number += block.count("\n")
            if index.size:
                yield Chunk(before + 1 + index, cells)


def _chunks(rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[Chunk]:
    while read := list(islice(rows, CHUNK_LINES)):
        some = [(number, row) for number, row in read if not row[0].startswith("#")]
        if not some:
            continue
        numbered = np.fromiter((number for number, _ in some), np.int64, len(some))
        fitting = [row if len(row) == width else _fitted(row, width) for _, row in some]
        yield Chunk(numbered, tuple(zip(*fitting, strict=True)))


def _fitted(row: list[str], width: int) -> list[str]:
    """A row's cells, padded or cut to ``width``."""
    return row[:width] if len(row) >= width else [*row, *[""] * (width - len(row))]


def _delimiter(lines: Sequence[str]) -> str:
    """The sign that splits most lines into the same number (> 1) of cells."""
    content = [line for line in lines if line.strip() and not line.startswith("# ")] or list(lines)
    best, chosen = (0.0, 0), ","
    for sign in _DELIMITERS:
        counts = [line.count(sign) for line in content]
        usual = max(set(counts), key=lambda count: (counts.count(count), count))
        score = round(counts.count(usual) / len(counts), 1), 1
        if usual and score > best:
            best, chosen = score, sign
    words = {len(line.split()) for line in content if not line.startswith("#")}
    return " " if best == (0.0, 0) and len(words) == 1 and words != {1} else chosen


def _header(
    rows: list[tuple[int, list[str]]], delimiter: str
) -> tuple[list[str], list[tuple[int, list[str]]], tuple[str, ...]]:
    """The header without ``#``, the rows below it, and notes."""
    body = [(number, row) for number, row in rows if not row[0].startswith("#")]
    above = [row for number, row in rows if row[0].startswith("#") and (not body or number < body[0][0])]
    if above and body and delimiter == " ":  # "# columns: time rss": the last words are the names
        above[-1] = [word for word in above[-1] if word.strip("# ")][-len(body[0][1]) :]
    if above and body and len(above[-1]) == len(body[0][1]) > 1 and not _is_header(body[0][1]):
        return [above[-1][0].lstrip("# "), *above[-1][1:]], body, ()
    if body and _is_header(body[0][1]):
        return body[0][1], body[1:], ()
    return [], body, ("the file has no header: its columns are called column 1, column 2 …",)


def _is_header(row: list[str]) -> bool:
    """True if a row has only names: no number, no time."""
    words = [cell for cell in row if cell.strip()]
    counted = numbers(words)
    return bool(np.isnan(counted.value).all()) and not any(looks_like_time(word) for word in words)


def _named(header: Sequence[str]) -> Iterator[str]:
    """Makes headers unique."""
    seen: dict[str, int] = {}
    for index, cell in enumerate(header):
        name = " ".join(cell.split()) or f"column {index + 1}"
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}"


def _decimal(sample: Sequence[Sequence[str]], name: str, delimiter: str) -> str:
    """The decimal sign: comma if numbers have one. Raises DataError if it is ambiguous."""
    if delimiter == ",":
        return "."
    cells = [cell for column in sample for cell in column if cell.strip().lower() not in MISSING]
    commas = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    if not commas or any(_POINT_NUMBER.fullmatch(cell) for cell in cells):
        return "."
    if all(_GROUPS.fullmatch(cell) for cell in commas):
        raise DataError(f"{name}: {commas[0].strip()} is ambiguous: give --decimal , or --decimal .")
    return ","
