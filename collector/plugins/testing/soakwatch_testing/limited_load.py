"""A program for the load ``command``: a generator, and a device that forwards at most a given packet rate.

``python -m soakwatch_testing.limited_load --rate 8000 --capacity 6200`` sends 8000 packets a second and gets at most
6200 back; it counts both from 0 and prints them every 100 ms and at its end. ``--noise`` varies the capacity from tick
to tick, seeded; ``--most`` limits what the generator can send; ``--requests`` counts requests and failures.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time

TICK_S = 0.1


class Stopped(Exception):  # noqa: N818 - a signal, and no error
    """A signal asked the program to end."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--capacity", type=float, required=True)
    parser.add_argument("--most", type=float, default=float("inf"))
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--requests", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Send until a signal arrives."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    keys = _arguments()
    scatter = random.Random(f"{keys.seed} {keys.rate}")  # noqa: S311 - a test's dice, not a secret
    begin = last = time.monotonic()
    sent = back = 0.0
    try:
        while True:
            print(_line(sent, back, requests=keys.requests), flush=True)
            time.sleep(max(0.0, last + TICK_S - time.monotonic()))
            now = time.monotonic()
            capacity = keys.capacity * (1 + scatter.gauss(0.0, keys.noise))
            out = min(keys.rate, keys.most) * (now - last)
            sent, back = sent + out, back + min(out, capacity * (now - last))
            last = now
    except Stopped:
        out = min(keys.rate, keys.most) * (time.monotonic() - last)
        sent, back = sent + out, back + min(out, keys.capacity * (time.monotonic() - last))
        print(_line(sent, back, requests=keys.requests), flush=True)
        sys.exit(0 if begin <= last else 1)


def _line(sent: float, back: float, *, requests: bool) -> str:
    lost = round(sent) - round(back) if sent - back > 0.5 else 0
    if requests:
        return f"load.requests {round(sent) - lost}, load.failures {lost}"
    return f"load.tx.packets {round(sent)}, load.rx.packets {round(sent) - lost}"


def _stop(_number: int, _frame: object) -> None:
    raise Stopped


if __name__ == "__main__":
    main()
