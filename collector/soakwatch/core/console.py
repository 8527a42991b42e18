"""rich's console for commands: what a broken pipe means is the command line's to say."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class CommandConsole(Console):
    """A console that raises BrokenPipeError where the reader of its output is gone.

    rich itself ends the process with code 1 then, which is that of a verdict: fail.
    """

    def say(self, text: str) -> None:
        """Print a line as it is; a terminal wraps it."""
        self.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError."""
        # Nothing of it is written later: what is left would be tried again with the next line.
        del self._buffer[:]
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
