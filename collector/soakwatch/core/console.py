"""rich's console for commands: what a broken pipe means is the command line's to say."""

from __future__ import annotations

import errno
import os
import textwrap

from rich.cells import cell_len
from rich.console import Console


class CommandConsole(Console):
    """A console that raises BrokenPipeError where the reader of its output is gone.

    rich itself ends the process with code 1 then, which is that of a verdict: fail.
    """

    def say(self, text: str) -> None:
        """Print a line; on a terminal that is too narrow it goes on between words, so that no path or address, and no
        number, is broken. A single word that is longer stays in one piece."""
        lines = [text]
        if self.is_terminal and cell_len(text) > self.width:
            lines = textwrap.wrap(
                text, self.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        for line in lines:
            self.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError."""
        # Nothing of it is written later: what is left would be tried again with the next line.
        del self._buffer[:]
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
