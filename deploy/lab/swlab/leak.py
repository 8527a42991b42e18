"""A process that leaks memory at a fixed rate after a while."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

_TICK_S = 0.1


def main(words: Sequence[str] | None = None) -> None:
    """Leak, and end after ``--seconds``."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rate", type=int, default=1 << 20, help="bytes a second")
    parser.add_argument("--after", type=float, default=20.0, help="seconds without a leak")
    parser.add_argument("--seconds", type=float, default=180.0, help="it ends by itself after this")
    options = parser.parse_args(words)
    kept: list[bytearray] = []
    begin = time.monotonic()
    while (lived := time.monotonic() - begin) < options.seconds:
        if lived > options.after:
            kept.append(bytearray(b"\1" * round(options.rate * _TICK_S)))
        time.sleep(_TICK_S)


if __name__ == "__main__":
    main()
