"""What a library writes past Python to the terminal is one line of the log, and does not go through the picture."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PANIC = "\\nthread '<unnamed>' panicked at src/ber/tag.rs:12:5:\\nindex out of bounds\\nstack backtrace:\\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, whose standard error is a pipe, as a terminal would be."""
    program = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(program, capture_output=True, text=True, timeout=240, check=True)


def test_a_panic_of_a_library_is_one_line() -> None:
    """A hundred panics of 25 lines are one line, Python's own words pass, and afterwards all is as before."""
    done = run(f"""
        import os, sys
        from soakwatch.cli.display.native_stderr import native_stderr_logged
        from soakwatch.cli.outlet import lasting_terminal
        with lasting_terminal() as terminal, native_stderr_logged(terminal):
            for _ in range(100):
                os.write(2, b"{PANIC}")
                for frame in range(20):
                    os.write(2, b"  %d: core::panicking::panic\\n      at ./src/panic.rs:1:1\\n" % frame)
            print("own words", file=sys.stderr)
        os.write(2, b"afterwards\\n")
    """)
    lines = done.stderr.splitlines()
    assert "own words" in lines
    assert lines[-1] == "afterwards"
    told = [line for line in lines if "panicked" in line]
    assert len(told) == 1
    assert told[0].startswith("a library: thread '<unnamed>' panicked at src/ber/tag.rs:12:5: index out of bounds")
    assert not any("panic.rs" in line or "backtrace" in line for line in lines)


def test_without_a_standard_error_nothing_is_changed() -> None:
    """It may be closed."""
    run("""
        import os, sys
        from soakwatch.cli.display.native_stderr import native_stderr_logged
        from soakwatch.cli.outlet import Terminal
        os.close(2)
        sys.stderr = None
        with native_stderr_logged(Terminal()):
            pass
        assert sys.stderr is None
    """)


def test_a_lost_terminal_is_no_library() -> None:
    """The reader of standard output is gone: the word about it is Soakwatch's own."""
    done = run("""
        import os, sys, time
        from soakwatch.cli.display.native_stderr import native_stderr_logged
        from soakwatch.cli.outlet import lasting_terminal
        out, into = os.pipe()
        os.close(out)
        os.dup2(into, 1)
        with lasting_terminal() as terminal, native_stderr_logged(terminal):
            print("a line")
            assert terminal.drain()
            print("own words", file=sys.stderr)
    """)
    assert done.stderr.splitlines() == [
        "soakwatch: standard output is lost (Broken pipe): the work goes on without it",
        "own words",
    ]
