"""The command line of the lab."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from swlab import life
from swlab.places import GENERATOR
from swlab.trouble import LabError

_ALL = "all"


def main(words: Sequence[str]) -> int:
    """Returns 0 if everything was as expected, 1 if not, 4 if the lab cannot run."""
    if words[:1] == ["probe"]:
        return _probe(list(words[1:]))
    parser = _parser()
    options = parser.parse_args(words)
    try:
        return _do(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 4
    except ModuleNotFoundError as missing:
        if not str(missing.name).startswith("soakwatch"):
            raise
        print(
            f"lab: {options.what} compares records itself, and {sys.executable} has no {missing.name}: "
            "`tests/run` or `deploy/demo` makes a .venv that has it",
            file=sys.stderr,
        )
        return 4
    except KeyboardInterrupt:
        print("lab: ended; `deploy/lab/lab down` removes what is left", file=sys.stderr)
        return 4


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lab",
        description="Two routers (FRR with BGP EVPN, keepalived, snmpd, sshd), a generator and a sink in network "
        "namespaces of this machine, and soakwatch's runs over them. Needs root.",
        epilog="Example: deploy/lab/lab run failover",
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    what.add_parser("install", help="install what is missing, by apt")
    what.add_parser("up", help="make the lab (anew)")
    what.add_parser("down", help="remove it, whatever is left of it")
    what.add_parser("status", help="say whether it is up, and what this kernel lacks")
    run = what.add_parser("run", help="run a scenario, or all, and compare its verdict with the expected one")
    run.add_argument("scenario", nargs="+", help="name of a scenario, or all")
    failover = what.add_parser("failover", help="fail over again and again; outages by loss and by time stamps")
    failover.add_argument("--repeat", type=int, default=10, help="how often (default 10)")
    fingerprint = what.add_parser("fingerprint", help="what a router is, by its agent, SSH and SNMP, side by side")
    for each in (run, failover, fingerprint):
        each.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs (default: runs)")
        each.add_argument("--keep", action="store_true", help="leave the lab up afterwards")
    inside = what.add_parser("exec", help="run a command in a router: lab exec ra vtysh")
    inside.add_argument("router", choices=("ra", "rb"))
    inside.add_argument("words", nargs=argparse.REMAINDER)
    what.add_parser("probe", help="the generator of numbered packets (lab probe --help)")
    return parser


def _do(options: argparse.Namespace) -> int:
    if options.what == "install":
        life.install()
        return 0
    life.check_ground()
    if options.what == "exec":
        return _exec(options.router, options.words)
    with life.held():
        if options.what == "up":
            life.up()
        elif options.what == "down":
            life.down()
        elif options.what == "status":
            return _status()
        else:
            was_up = not life.settled()
            try:
                return _run(options)
            finally:
                if not (was_up or options.keep):
                    life.down()
    return 0


def _status() -> int:
    from swlab.topology import lacking

    trouble = life.settled()
    print(f"the lab is {'up' if not trouble else f'not ready: {trouble}'}")
    print(f"this kernel lacks: {', '.join(lacking()) or 'nothing'}")
    return 1 if trouble else 0


def _run(options: argparse.Namespace) -> int:
    from swlab.running import run
    from swlab.scenarios import SCENARIOS
    from swlab.table import scenario_table

    if options.what == "failover":
        if not 1 <= options.repeat <= 50:
            raise LabError(f"--repeat {options.repeat}: use 1 to 50")
        from swlab.failovers import failovers

        return failovers(options.repeat, options.runs)
    if options.what == "fingerprint":
        from swlab.fingerprints import fingerprints

        return fingerprints(options.runs)
    names = list(SCENARIOS) if _ALL in options.scenario else options.scenario
    for name in names:
        if name not in SCENARIOS:
            raise LabError(f"there is no scenario {name!r}: there are {', '.join(SCENARIOS)}, or {_ALL}")
    came = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        came.append(run(SCENARIOS[name], options.runs))
    print(scenario_table(came))
    return int(any(each.wrong for each in came))


def _exec(name: str, words: Sequence[str]) -> int:
    from swlab.places import router

    prefix = life.entry_command(router(name))
    os.execvp(prefix[0], [*prefix, *(words or ["bash"])])  # noqa: S606


def _probe(words: Sequence[str]) -> int:
    from swlab import probe

    if {"-h", "--help"} & set(words):
        probe.main(words)
    os.execvp("ip", ["ip", "netns", "exec", GENERATOR, sys.executable, "-m", "swlab.probe", *words])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
