"""Commands of a look on the host of the process: one script with several parts, and their outputs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Protocol

_TIMES = re.compile(r"(\d{1,9})m([\d.]{1,12})s")
TIMES = "times"


class Host(Protocol):
    """Where the process runs: this machine, or one over SSH."""

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """A command's output by its shell, bounded in size, and what went wrong ("" if nothing); never raises."""
        ...


def script(parts: Mapping[str, str]) -> tuple[str, str]:
    """A script whose output ``parts_of`` cuts into its parts again, and the mark between these.

    A part that fails does not end the script; the last is what all of it cost.
    """
    mark = f"==={secrets.token_hex(8)}"
    lines = [f"echo; echo '{mark} {name}'\n{command}" for name, command in {**parts, TIMES: "times"}.items()]
    return "\n".join([*lines, f"echo; echo '{mark}'"]), mark


def parts_of(output: bytes, mark: str) -> dict[str, bytes]:
    """The outputs of a script's parts by name; one that was cut off is not among them."""
    cut = output.split(b"\n" + mark.encode())
    parts = {}
    for piece in cut[1:-1] if len(cut) > 1 else ():
        name, _, text = piece.partition(b"\n")
        parts[name.strip().decode("ascii", "replace")] = text.removesuffix(b"\n")
    return parts


def cpu_seconds(times: bytes) -> float | None:
    """The CPU time of a shell and what it ran, from the output of ``times``; None if it cannot be read.

    >>> cpu_seconds(b"0m0.01s 0m0.02s\\n1m0.30s 0m0.00s\\n")
    60.33
    """
    found = _TIMES.findall(times.decode("ascii", "replace"))
    if len(found) != 4:
        return None
    try:
        return round(sum(60 * int(minutes) + float(rest) for minutes, rest in found), 6)
    except ValueError:
        return None


async def ask(host: Host, parts: Mapping[str, str], timeout_s: float) -> tuple[dict[str, bytes], str]:
    """Runs the parts in one script; returns their outputs, and what went wrong."""
    text, mark = script(parts)
    output, trouble = await host.run(text, timeout_s)
    return parts_of(output, mark), trouble


def first_line(data: bytes, most: int = 200) -> str:
    """The first line with something in it, for a reason."""
    lines: Sequence[str] = data.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:most] for line in lines if line.strip()), "")
