r"""What a terminal shows: control characters of prompts, pagers and echoes resolved into plain lines."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\x9b]")
_SEQUENCE = re.compile(
    r"\x1b\[([0-9;?]{0,16})[ -/]{0,4}([@-~])|\x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)"
    r"|\x1b[()#][0-9A-Za-z]|\x1b[=>78NOMDEHc]"
)
_PARTIAL = re.compile(r"\x1b(?:\[[0-9;?]{0,16}|\][^\x07\x1b]{0,256})?\Z")
WIDEST = 4096


def shown(text: str) -> str:
    r"""The text as a terminal would show it: carriage returns, backspaces and cursor movements within a line done,
    colours and the like left out, tabs kept.

    >>> shown("a\r\n--More--\r        \rb\x1b[1mc\x1b[0m\x08d\r\n")
    'a\nbd\n'
    >>> shown("  ---- More ----\x1b[16D                \x1b[16Dnext")
    'next'
    """
    if _CONTROL.search(text) is None:
        return text
    return "\n".join(_line(line) for line in text.replace("\r\n", "\n").split("\n"))


def _line(line: str) -> str:
    if _CONTROL.search(line) is None:
        return line
    line = _PARTIAL.sub("", line)
    cells: list[str] = []
    column = index = 0
    while index < len(line):
        char = line[index]
        if char == "\x1b":
            match = _SEQUENCE.match(line, index)
            if match is None:
                index += 1
                continue
            index = match.end()
            if match[2]:
                column = _move(cells, column, match[1], match[2])
            continue
        index += 1
        if char == "\r":
            column = 0
        elif char == "\b":
            column = max(0, column - 1)
        elif char >= " " or char == "\t":
            if column < len(cells):
                cells[column] = char
            else:
                if column > len(cells):
                    cells.extend(" " * (column - len(cells)))
                cells.append(char)
            column += 1
    return "".join(cells).rstrip()


def _move(cells: list[str], column: int, arguments: str, what: str) -> int:
    """One CSI sequence: the new column."""
    head = arguments.partition(";")[0].lstrip("?")
    count = min(int(head), WIDEST) if head.isdecimal() else None
    if what == "D":
        return max(0, column - (count or 1))
    if what == "C":
        return min(WIDEST, column + (count or 1))
    if what == "G":
        return max(0, (count or 1) - 1)
    if what == "K":
        if count in (None, 0):
            del cells[column:]
        elif count == 1:
            cells[:column] = " " * min(column, len(cells))
        else:
            cells.clear()
    elif what in ("H", "J", "f"):
        cells.clear()
        return 0
    return column


def last_line(text: str) -> str:
    """What stands on the line of the cursor.

    >>> last_line("x\\r\\nasa# ")
    'asa# '
    """
    tail = text[-2 * WIDEST :]
    tail = tail[tail.rfind("\n") + 1 :]
    return tail if _CONTROL.search(tail) is None else _line(tail)
