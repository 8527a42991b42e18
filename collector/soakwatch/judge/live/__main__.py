"""``python -m soakwatch.judge.live FOLDER``: follows a run and answers each line on its input with what is new.

An answer is the lines of ``soakwatch.judge.live.answers`` and a line with a dot. It ends with its input. If it cannot
go on it answers ``! reason`` and ends: the caller starts another one, which restores its state from the record.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from soakwatch.core.c_allocator import give_big_arrays_back
from soakwatch.core.errors import SoakwatchError
from soakwatch.judge.live.answers import answer, evaluator_of
from soakwatch.judge.live.evaluator import LiveEvaluator


def main() -> int:
    """Answer until the input ends."""
    return follow(Path(sys.argv[1]))


def become_judge() -> int:
    """As ``main``, in a copy of the run's process: the folder is the first line of the input."""
    folder = sys.stdin.readline().rstrip("\n")
    return follow(Path(folder)) if folder else 0


def follow(folder: Path) -> int:
    """Answer until the input ends."""
    os.nice(10)
    give_big_arrays_back()
    evaluator: LiveEvaluator | None = None
    for _ in sys.stdin:
        try:
            evaluator = evaluator or evaluator_of(folder)
            for line in answer(evaluator):
                print(line)
        except SoakwatchError as error:
            print(f"! {error}", flush=True)
            return 1
        except Exception as error:  # noqa: BLE001 - a defect, and the run's log is the only one to hear of it
            print(f"! the live judge failed: {type(error).__name__}: {error}".replace("\n", " "), flush=True)
            return 1
        print(".", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
