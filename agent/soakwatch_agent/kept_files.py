"""Files of the kernel that every poll reads: kept open, so that a reading is one system call and looks up no path."""

from __future__ import annotations

import os
from typing import Callable, Dict, List, Optional

from soakwatch_agent.context import HostContext
from soakwatch_agent.procfs import read_text

_CHUNK = 1 << 16
MAX_PROCESSES = 64
"""So many processes have their files kept open: three descriptors each."""


class KeptFile:
    """A file that the kernel makes anew at each reading.

    ``whole``: it comes in one piece however long it is, so what is shorter than what was asked for is all of it.
    """

    __slots__ = ("_fd", "_path", "_whole")

    def __init__(self, path: str, *, whole: bool = False) -> None:
        self._path, self._whole = path, whole
        self._fd = -1

    def read(self) -> str:
        """Its text now; non-UTF-8 bytes become surrogates. Raises OSError."""
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._fd, _CHUNK, 0)
            if not self._whole or len(data) == _CHUNK:
                more = data
                while more:
                    more = os.pread(self._fd, _CHUNK, len(data))
                    data += more
        except OSError:
            self.close()  # the next reading looks for it again
            raise
        return data.decode("utf-8", "surrogateescape")

    def close(self) -> None:
        """Closes it; the next reading opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class KeptFiles:
    """The files that a probe reads at each poll. Those of a recorded machine may be replaced: they are not kept."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files: List[KeptFile] = []

    def reader(self, absolute: str, *, whole: bool = False) -> Callable[[], str]:
        """What reads one of the machine's files as ``read_text`` does. Raises OSError when it is called.

        ``whole``: see ``KeptFile``; so are files that the kernel makes as one record (``single_open``), as most are
        that are not lists.
        """
        path = self._context.path(absolute)
        if not self._context.real:
            return lambda: read_text(path)
        file = KeptFile(path, whole=whole)
        self._files.append(file)
        return file.read

    def close(self) -> None:
        """Closes them."""
        for file in self._files:
            file.close()


class _Process:
    """The files of one process. They are never those of another one that has its pid later."""

    __slots__ = ("_fd", "_folder", "memory", "stat")

    def __init__(self, folder: str) -> None:
        self._folder = f"{folder}/fd"
        self.stat, self.memory = KeptFile(f"{folder}/stat", whole=True), KeptFile(f"{folder}/statm", whole=True)
        self._fd = -1

    def open_files(self) -> int:
        """How many descriptors it has, as the size of their folder says since kernel 6.2; before it 0. Raises
        OSError."""
        if self._fd < 0:
            self._fd = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)  # which needs no right to read it
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        """Closes them."""
        self.stat.close()
        self.memory.close()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class KeptProcesses:
    """The files of the processes that each poll reads, of at most ``MAX_PROCESSES``; none of a recorded machine."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._kept: Dict[int, _Process] = {}

    def of(self, pid: int) -> Optional[_Process]:
        """The files of a process, if they are kept."""
        return self._kept.get(pid)

    def keep(self, pid: int) -> None:
        """Keeps the files of a process from its next reading on, if there is room."""
        if pid not in self._kept and len(self._kept) < MAX_PROCESSES and self._context.real:
            self._kept[pid] = _Process(self._context.path(f"/proc/{pid}"))

    def drop(self, pid: int) -> None:
        """Closes the files of a process."""
        kept = self._kept.pop(pid, None)
        if kept is not None:
            kept.close()

    def close(self) -> None:
        """Closes them all."""
        for pid in list(self._kept):
            self.drop(pid)
