"""Blocks of lines on their way to a database, combined into requests of similar size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """Lines as one text, separated by line ends, and their number."""

    text: bytes
    count: int

    @staticmethod
    def of(lines: Iterable[bytes]) -> Block:
        """A block of these lines without empty ones."""
        some = [line for line in lines if line]
        return Block(b"\n".join(some), len(some))

    def lines(self) -> list[bytes]:
        """The lines of the block."""
        return self.text.split(b"\n") if self.count else []

    def first(self, count: int) -> tuple[Block, Block]:
        """Split into at most ``count`` lines and the rest."""
        if self.count <= count:
            return self, NO_LINES
        lines = self.lines()
        return Block.of(lines[:count]), Block.of(lines[count:])


NO_LINES = Block(b"", 0)


def gathered(parts: Iterable[Block], size: Callable[[], int]) -> Iterator[Block]:
    """Combine parts into as few blocks of at most ``size`` lines as possible, in order. A larger part stays whole."""
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
    """Yield the same blocks while another thread makes the next one, one ahead.

    An exception from making a block is raised in its place.
    """

    def handed() -> Generator[Block, None, None]:
        coming = maker.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = maker.submit(next, blocks, None)
            yield block

    with ThreadPoolExecutor(1, "lines") as maker, closing(handed()) as blocks_made:
        yield blocks_made
