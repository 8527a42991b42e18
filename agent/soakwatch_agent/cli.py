"""The command ``soakwatch-agent``: prints what it reads of this machine, or runs as a service."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from typing import NoReturn, Optional, Sequence

from soakwatch_agent import __doc__ as about
from soakwatch_agent.context import SECOND, HostContext, watch_of
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_agent.host import Host, probe_names, source, steady
from soakwatch_agent.version import VERSION
from soakwatch_agent.wire import encode
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Poll, PollOutcome

_EXAMPLES = """examples:
  soakwatch-agent --once                                 poll this machine once
  soakwatch-agent --interval 1s --process nginx          a line a second, with every nginx
  soakwatch-agent --process 'snort*' --process pidfile:/run/bgpd.pid --process 'cmdline:java.*broker'
  soakwatch-agent --root recorded --once --count 2       two polls of a recorded machine, without waiting
  soakwatch-agent --once --probe ledger                  who owns the memory: all of it by owner, in bytes
  soakwatch-agent --fingerprint                          what this machine is, as JSON
  soakwatch-agent run --help                             as a service: also serve, attach, status, stop
"""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def interval_s(text: str) -> float:
    """Seconds of ``200ms``, ``1s``, ``5m`` or ``1h``.

    >>> interval_s("200ms")
    0.2
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an interval: write 200ms, 1s or 5m")
    value = float(match[1]) * _SECONDS[match[2]]
    if not 0.1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"the interval {text} is out of range: 100ms to 24h")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count: write 1 or more")
    return int(text)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Exits with code 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "soakwatch-agent", description=about, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--once", action="store_true", help="poll without waiting, then exit (with --count N: N polls)")
    add(
        "--interval",
        type=interval_s,
        default=1.0,
        metavar="T",
        help="time between polls, e.g. 200ms, 1s (default 1s)",
    )
    add("--count", type=_count, metavar="N", help="exit after N polls (default: never; with --once 1)")
    add("--root", default="/", metavar="DIR", help="folder that holds the machine's /proc, /sys and so on (default /)")
    add(
        "--process",
        action="append",
        default=[],
        metavar="NAME",
        help="process to watch: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:F (repeatable)",
    )
    add("--interface", action="append", metavar="GLOB", help="only these network interfaces (repeatable)")
    add("--core-folder", action="append", default=[], metavar="DIR", help="folder with core files (repeatable)")
    add("--probe", action="append", metavar="NAME", help="only this probe (repeatable); --probe=-NAME: all but it")
    add("--version", action="store_true", help="print the agent's version and exit")
    add("--list", action="store_true", help="list the probes and their metrics")
    add("--fingerprint", action="store_true", help="print what the machine is, as JSON, and exit")
    return parser


def _print_list() -> None:
    for name in sorted(probe_names()):
        each = source(name)
        sys.stdout.write(f"{name:<12}{each.about}\n")
        for metric in each.metrics:
            sys.stdout.write(f"{'':<14}{metric} [{BY_NAME[metric].unit}]\n")


def _watch(host: Host, *, interval: Optional[float], count: Optional[int]) -> None:
    """Prints one line a poll; ``interval`` None polls without waiting. A late poll skips the due times it overran."""
    now_ns = steady()
    due = now_ns()
    done = 0
    while count is None or done < count:
        start = now_ns()
        answer = host.poll(start)
        took = now_ns() - start
        poll = Poll(0, due if interval is not None else start, start, took, PollOutcome.OK, None, answer)
        sys.stdout.write(encode(poll) + "\n")
        sys.stdout.flush()
        done += 1
        if interval is None or done == count:
            continue
        step = int(interval * SECOND)
        due += max(1, -(-(now_ns() - due) // step)) * step
        time.sleep(max(0, due - now_ns()) / SECOND)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command ``soakwatch-agent``; returns its exit code: 0, or 2 for a wrong option."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("run", "serve", "attach", "status", "stop"):
        from soakwatch_agent.serve import main as serve

        return serve(words)
    parser = _parser()
    options = parser.parse_args(words)
    if options.version:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    if options.list:
        _print_list()
        return 0
    if not os.path.isdir(options.root):  # noqa: PTH112
        return _refuse(f"--root {options.root}: there is no such folder")
    if not os.path.isdir(os.path.join(options.root, "proc")):  # noqa: PTH112
        return _refuse(f"--root {options.root}: it has no folder proc, so it is not the root of a machine")
    root = os.path.realpath(options.root)
    if options.fingerprint:
        sys.stdout.write(json.dumps(fingerprint(root), indent=2) + "\n")
        return 0
    try:
        context = HostContext(
            root,
            tuple(watch_of(text) for text in options.process),
            None if options.interface is None else tuple(options.interface),
            tuple(options.core_folder),
        )
        host = Host(context, options.probe)
    except ValueError as error:
        return _refuse(str(error))
    count = options.count or (1 if options.once else None)
    try:
        _watch(host, interval=None if options.once else options.interval, count=count)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: exit without an error
        return 0
    finally:
        host.close()
    return 0


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"soakwatch-agent: {sentence}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
