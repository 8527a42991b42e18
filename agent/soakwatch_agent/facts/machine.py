"""The files of a machine, under / or another folder, and notes of what could not be read."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, Optional

from soakwatch_agent.procfs import read_line, read_text
from soakwatch_model.tree import Tree


class Machine:
    """Reads small files by absolute path; what is missing or unreadable is None or empty."""

    def __init__(self, root: str = "/") -> None:
        self._root = root.rstrip("/")

    @property
    def real(self) -> bool:
        """True if the files are the running kernel's, so its ioctls and programs describe the same machine."""
        return not self._root

    def path(self, absolute: str) -> str:
        """The path of a file as this process sees it."""
        return self._root + absolute

    def line(self, path: str) -> Optional[str]:
        """The stripped text of a file of one line."""
        return read_line(self.path(path))

    def text(self, path: str) -> str:
        """The whole text of a small file; empty if it cannot be read."""
        try:
            return read_text(self.path(path))
        except OSError:
            return ""

    def whole(self, path: str) -> Optional[int]:
        """The whole number in a file, decimal."""
        return whole(self.line(path))

    def names(self, path: str) -> List[str]:
        """The sorted names in a folder."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def link(self, path: str) -> Optional[str]:
        """The last path component of a symbolic link's target."""
        try:
            return os.readlink(self.path(path)).rstrip("/").rpartition("/")[2] or None
        except OSError:
            return None

    def why_not(self, path: str) -> str:
        """Why a file cannot be read, in words; empty if it can."""
        try:
            with open(self.path(path), "rb") as file:
                file.read(1)
        except PermissionError:
            return "only root may read it"
        except FileNotFoundError:
            return "there is no such file"
        except OSError as error:
            return (error.strerror or "no reason given").lower()
        return ""


class Notes:
    """What could not be read, a sentence each."""

    def __init__(self) -> None:
        self.lines: List[Tree] = []

    def put(self, into: Dict[str, Tree], key: str, value: Optional[Tree], missing: str = "") -> None:
        """Stores a value under ``key``; if it is None, adds the note ``missing``, unless that is empty."""
        if value is not None:
            into[key] = value
        elif missing:
            self.add(missing)

    def add(self, sentence: str) -> None:
        """Adds a note that is not there yet."""
        if sentence not in self.lines:
            self.lines.append(sentence)


def whole(text: Optional[str]) -> Optional[int]:
    """A whole number, None for any other text.

    >>> whole("-1"), whole("max")
    (-1, None)
    """
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def core_list(cores: Iterable[int]) -> str:
    """Cores as the kernel lists them.

    >>> core_list([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    runs: List[List[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cores_of_mask(mask: str) -> List[int]:
    """The cores of a mask in groups of hexadecimal digits, as RPS and XPS write it.

    >>> cores_of_mask("00000001,00000003")
    [0, 1, 32]
    """
    try:
        bits = int(mask.replace(",", ""), 16)
    except ValueError:
        return []
    return [core for core in range(bits.bit_length()) if bits >> core & 1]
