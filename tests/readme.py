"""Blocks of the README and of docs/ that a command prints: --update writes them, tests/test_docs.py compares."""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"(<!-- output: (?P<what>[^>]+) -->\n).*?(<!-- /output -->)", re.DOTALL)


def _printed(*words: str) -> str:
    """What a command prints into a pipe, here and in this process."""
    from click.testing import CliRunner

    from soakwatch.cli.main import soakwatch

    done = CliRunner().invoke(soakwatch, words, prog_name="soakwatch", catch_exceptions=False, standalone_mode=False)
    return done.stdout


def _table(*words: str) -> str:
    """The rows of a command's plain table, as Markdown."""
    rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in _printed(*words).splitlines() if line.strip()]
    return "\n".join([_row(*rows[0]), "|---|---|", *(_row(f"`{name}`", text) for name, text in rows[1:])])


def _whole_table(*words: str) -> str:
    """The same with every column; the first is code."""
    head, *rows = [re.split(r"\s{2,}", line.strip()) for line in _printed(*words).splitlines() if line.strip()]
    return "\n".join([_row(*head), f"|{'---|' * len(head)}", *(_row(f"`{name}`", *cells) for name, *cells in rows)])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _commands() -> str:
    from soakwatch.cli.main import COMMANDS

    return "\n".join(
        [
            "| command | what it does |",
            "|---|---|",
            *(_row(f"[`{name}`](#soakwatch-{name})", COMMANDS.summary(name)) for name in COMMANDS.names()),
        ]
    )


def _of_releases(*words: str) -> str:
    """What a command prints in a folder of twelve runs of three releases, the last of which forwards 7 % less."""
    from soakwatch_testing.records import SECOND, T0, judged_run

    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(12):
            judged_run(
                Path(folder) / "runs" / f"202311{14 + index}T221320Z-overnight",
                packets_per_s=1e6 * chance.gauss(1, 0.01) * (0.93 if index >= 8 else 1.0),
                begin_ns=T0 + index * 86400 * SECOND,
                release=("7.8", "7.9", "7.10")[index // 4],
                verdict="fail" if index == 9 else "pass",
                latency_s=0.002 * chance.gauss(1, 0.01),
                seed=index,
            )
        with chdir(folder):
            printed = _printed(*words)
    return f"```\n{printed.strip()}\n```"


def _plan_keys() -> str:
    from tests.plan_keys import keys_page, plan_parts

    return keys_page(plan_parts())


def _campaign_keys() -> str:
    from tests.plan_keys import campaign_parts, keys_page

    return keys_page(campaign_parts())


def _published(page: str) -> Callable[[], str]:
    """A page of tests/reference_pages.py, made when it is asked for."""

    def made() -> str:
        from tests import reference_pages

        pages = {
            "verdict": reference_pages.verdict_page,
            "api": reference_pages.api_page,
            "exit codes": reference_pages.exit_codes_page,
            "commands": reference_pages.commands_page,
        }
        return pages[page]()

    return made


BLOCKS: Mapping[str, Callable[[], str]] = {
    "soakwatch commands": _commands,
    "soakwatch pollers": lambda: _table("pollers"),
    "soakwatch loads": lambda: _table("loads"),
    "soakwatch sinks": lambda: _table("sinks"),
    "soakwatch rules": lambda: _table("rules"),
    "soakwatch rules --guide": lambda: _whole_table("rules", "--guide"),
    "soakwatch query": lambda: _table("query"),
    "soakwatch query tables": lambda: _whole_table("query", "tables"),
    "soakwatch figures": lambda: _of_releases("figures", "last"),
    "soakwatch trend": lambda: _of_releases("trend"),
    "soakwatch metrics --rules": lambda: _whole_table("metrics", "--rules"),
    "soakwatch metrics --events": lambda: _whole_table("metrics", "--events"),
    "soakwatch profiles --table": lambda: _whole_table("profiles", "--table"),
    "soakwatch schema plan": _plan_keys,
    "soakwatch schema campaign": _campaign_keys,
    "soakwatch schema verdict": _published("verdict"),
    "soakwatch schema api": _published("api"),
    "soakwatch --help": _published("exit codes"),
    "soakwatch COMMAND --help": _published("commands"),
}


def renewed(text: str) -> str:
    """A page with every block as its command prints it now."""
    return _BLOCK.sub(lambda match: f"{match[1]}{BLOCKS[match['what']]()}\n{match[3]}", text)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # for the modules beside this one
    stale = {
        page: new for page in PAGES if (new := renewed(page.read_text(encoding="utf-8"))) != page.read_text("utf-8")
    }
    if "--update" in sys.argv:
        for page, new in stale.items():
            page.write_text(new, encoding="utf-8")
    elif stale:
        sys.exit(f"{', '.join(page.name for page in stale)}: not up to date: python tests/readme.py --update")
