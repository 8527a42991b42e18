"""The sending process: reads one order, writes one answer, each a line of JSON."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

from soakwatch.core.installation import to_add_package
from soakwatch.engine.notify.message import Answer, order_of


def main() -> int:
    """Returns 0 once it has answered, whatever the answer."""
    with suppress(OSError):
        os.nice(10)
    warnings.simplefilter("ignore")  # those of imported libraries are not for the user
    # Libraries may print the address: only our line reaches stdout.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        out.write(_answer(sys.stdin.readline()).line() + "\n")
    return 0


def _answer(line: str) -> Answer:
    try:
        from soakwatch.engine.notify.service import ask
    except ImportError:
        return Answer(trouble=f"notifications need the package apprise: {to_add_package('apprise')}")
    try:
        return ask(*order_of(line))
    except Exception as defect:  # noqa: BLE001 - its text may hold the address
        return Answer(trouble=f"what sends it raised {type(defect).__name__}")


if __name__ == "__main__":
    sys.exit(main())
