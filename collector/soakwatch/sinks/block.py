"""Lines on their way to a database: many as one text, put together to requests of about the same size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines as one text, with an end between them, and their number."""

    text: bytes
    count: int

    @staticmethod
    def of(lines: Iterable[bytes]) -> Block:
        """These lines; the empty ones are left out."""
        some = [line for line in lines if line]
        return Block(b"\n".join(some), len(some))

    def lines(self) -> list[bytes]:
        """The lines again."""
        return self.text.split(b"\n") if self.count else []

    def first(self, count: int) -> tuple[Block, Block]:
        """At most so many lines, and the others."""
        if self.count <= count:
            return self, NO_LINES
        lines = self.lines()
        return Block.of(lines[:count]), Block.of(lines[count:])


NO_LINES = Block(b"", 0)


def gathered(parts: Iterable[Block], size: Callable[[], int]) -> Iterator[Block]:
    """The same lines in the same order, as few blocks of at most ``size`` lines as the parts allow.

    A part is not taken apart: one that is larger by itself stays so.
    """
    texts: list[bytes] = []
    count = 0
    for part in parts:
        if texts and count + part.count > size():
            yield Block(b"\n".join(texts), count)
            texts, count = [], 0
        if part.count:
            texts.append(part.text)
            count += part.count
    if texts:
        yield Block(b"\n".join(texts), count)


@contextmanager
def ahead(blocks: Iterator[Block]) -> Iterator[Iterator[Block]]:
    """The same blocks in the same order; while one is being sent, another thread makes the next one, and no more.

    What the making raises comes where its block would have come.
    """

    def handed() -> Generator[Block, None, None]:
        coming = maker.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = maker.submit(next, blocks, None)
            yield block

    with ThreadPoolExecutor(1, "lines") as maker, closing(handed()) as blocks_made:
        yield blocks_made
