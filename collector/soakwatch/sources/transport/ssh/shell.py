"""One kept ``sh`` on a device: a script goes in, its output comes back between marks that nobody can guess.

The exit status says nothing here (a process that ends between the glob and the ``cat`` spoils it); the end mark does.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import asyncssh

from soakwatch.sources.abc import SourceError
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable

MAX_OUTPUT = 8 << 20
_MAX_STDERR = 1 << 20
_CHUNK = 1 << 18
_MAX_QUOTED_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Reply:
    """What a script brought: the bytes of each part by its name, what it complained of (stderr), and the time that
    the exchange took. A part that is not there was never reached."""

    parts: dict[str, bytes]
    complaints: str
    seconds: float


class NoShellError(SourceError):
    """The other end is no POSIX shell; ``answer`` is what it wrote instead."""

    def __init__(self, sentence: str, answer: str) -> None:
        super().__init__(sentence)
        self.answer = answer


class Shell:
    """A channel with ``sh`` in it. A script that does not end in time closes it, and the next opens another."""

    def __init__(self, line: DeviceConnection, most_output: int = MAX_OUTPUT) -> None:
        self._line = line
        self._most = most_output
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._mark = ""
        self._count = 0
        self.opened = 0  # how many channels there were: what is counted on the device begins anew with each

    @property
    def open(self) -> bool:
        """True while the channel stands."""
        return self._process is not None and not self._process.is_closing()

    async def run(self, script: str, timeout_s: float) -> Reply:
        """Runs a script made of ``part()`` texts and gives its parts back.

        Raises SourceError if the line is down, the script does not end in time, or its output is beyond bounds, and
        NoShell if nothing on the other end understands ``sh``.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                process = await self._opened()
                self._count += 1
                mark = f"@{self._mark}.{self._count}"
                begun = loop.time()
                with suppress(OSError):  # a device that refuses exec closes at once: what it said is read below
                    process.stdin.write(_wrapped(script, mark).encode())
                end = f"\n{mark} end\n".encode()
                out, complaints = await _both(
                    _until(process.stdout, end, self._most, process.close),
                    _until(process.stderr, end, _MAX_STDERR, process.close),
                )
                return Reply(split(out, mark), complaints.decode("utf-8", "replace"), loop.time() - begun)
        except TimeoutError:
            self.close()
            # The line may be dead or the device's shell stuck: either way nothing that was asked before may answer.
            self._line.drop()
            raise SourceError(f"{self._line.name} did not answer a poll within {timeout_s:.3g} s") from None
        except (OSError, asyncssh.Error, BrokenPipeError) as error:
            self.close()
            raise self._line.failed(error) from None
        except _CutError as cut:
            self.close()
            raise self._meaning(cut) from None
        except asyncio.CancelledError:
            self.close()
            self._line.drop()
            raise

    def _meaning(self, cut: _CutError) -> SourceError:
        name = self._line.name
        if cut.too_much:
            return SourceError(f"{name} sent more than {self._most >> 20} MiB for one poll: it was cut off")
        answer = printable(cut.answer.decode("utf-8", "replace"))
        if self._count <= 1:
            text = f": it answered {answer!r}" if answer else ""
            return NoShellError(
                f"{name} has no POSIX shell for this account{text}", cut.answer.decode("utf-8", "replace")
            )
        return SourceError(f"{name} ended its shell in the middle of a poll: the connection or the shell was closed")

    async def _opened(self) -> asyncssh.SSHClientProcess[bytes]:
        if self._process is not None and not self._process.is_closing():
            return self._process
        self.close()
        connection = await self._line.connection()
        # exec: the account's login shell (and what its start files run) is gone at once
        self._process = await connection.create_process("exec sh", encoding=None, stdin=asyncssh.PIPE)
        self._mark, self._count = secrets.token_hex(12), 0
        self.opened += 1
        return self._process

    def close(self) -> None:
        """Closes the channel; what runs on the device then ends with its input."""
        if self._process is not None:
            self._process.close()
        self._process = None


def part(name: str, command: str) -> str:
    """A part of a script: the output of a command under a name.

    >>> part("load", "cat /proc/loadavg")
    "echo; echo '@@ load'; cat /proc/loadavg"
    """
    return f"echo; echo '@@ {name}'; {command}"


def _wrapped(script: str, mark: str) -> str:
    """The shell reads the whole script before it runs it, so that no command can read the rest of it as its input."""
    body = script.replace("'@@ ", f"'{mark} ")
    return f"{{\n{body}\necho; echo '{mark} end'; echo >&2; echo '{mark} end' >&2\n}} </dev/null\n"


def split(out: bytes, mark: str) -> dict[str, bytes]:
    r"""The parts of an output, without what stands before the first mark (a greeting).

    >>> split(b"hello\n\n@m a\n1\n2\n\n@m b\n", "@m")
    {'a': b'1\n2\n', 'b': b''}
    """
    parts: dict[str, bytes] = {}
    for piece in (b"\n" + out).split(f"\n{mark} ".encode())[1:]:
        head, newline, body = piece.partition(b"\n")
        if newline:
            parts[head.decode("utf-8", "replace")] = body
    return parts


class _CutError(Exception):
    def __init__(self, answer: bytes, *, too_much: bool) -> None:
        super().__init__()
        self.answer, self.too_much = answer, too_much


async def _both(out: Coroutine[None, None, bytes], complaints: Coroutine[None, None, bytes]) -> tuple[bytes, bytes]:
    """Both outputs, or one ``_Cut`` with what was written on either."""
    reported = await asyncio.gather(out, complaints, return_exceptions=True)
    cuts = [each for each in reported if isinstance(each, _CutError)]
    if cuts:
        raise _CutError(b" ".join(cut.answer for cut in cuts if cut.answer), too_much=any(cut.too_much for cut in cuts))
    for each in reported:
        if isinstance(each, BaseException):
            raise each
    return cast("tuple[bytes, bytes]", tuple(reported))


async def _until(reader: asyncssh.SSHReader[bytes], mark: bytes, most: int, close: Callable[[], None]) -> bytes:
    gathered = bytearray()
    while True:
        chunk = await reader.read(_CHUNK)
        if not chunk:
            raise _CutError(bytes(gathered[:_MAX_QUOTED_BYTES]), too_much=False)
        begin = max(0, len(gathered) - len(mark))
        gathered += chunk
        index = gathered.find(mark, begin)
        if index >= 0:
            return bytes(gathered[:index])
        if len(gathered) > most:
            close()
            raise _CutError(b"", too_much=True)
