"""rich's console for commands; the command line decides what a broken pipe means."""

from __future__ import annotations

import errno
import os
import textwrap

from rich.cells import cell_len
from rich.console import Console


class CommandConsole(Console):
    """A console that raises BrokenPipeError if the reader of its output is gone.

    rich itself would exit with code 1, which means the verdict fail.
    """

    def say(self, text: str) -> None:
        """Prints a line; on a narrow terminal it is wrapped between words, never within one, so that paths, addresses
        and numbers stay whole."""
        lines = [text]
        if self.is_terminal and cell_len(text) > self.width:
            lines = textwrap.wrap(
                text, self.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        for line in lines:
            self.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError."""
        # Drop the buffer: the rest would be written again with the next line.
        del self._buffer[:]
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
