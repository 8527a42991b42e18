"""The groups of commands in ``soakwatch --help``, and what other programs call the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Run": ("demo", "init", "check", "run", "event", "stop", "resume"),
    "Look": ("ps", "watch", "open", "serve", "runs", "report", "figures"),
    "Judge": ("judge", "diagnose", "import", "rules", "drill", "decided"),
    "Many runs": ("campaign", "compare", "trend", "archive", "query"),
    "Lab server": ("submit", "queue", "token"),
    "Devices and generators": ("probe", "profiles", "pollers", "loads", "metrics", "agent", "calibrate"),
    "Keep and send": (*("note", "seal", "verify", "bundle", "export", "sink", "sinks", "dashboards", "notify"),),
    "Shell and editor": ("completion", "man", "schema"),
}
"""Every command once, in the order in which a user needs them."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("status", "state"), ("ps", "watch")),
    **dict.fromkeys(("list", "ls", "history"), ("runs",)),
    **dict.fromkeys(("validate", "lint", "preflight", "dry-run", "dryrun"), ("check",)),
    **dict.fromkeys(("log", "logs", "tail", "follow", "monitor", "top", "attach"), ("watch",)),
    **dict.fromkeys(("show", "view", "result", "results", "html", "summary"), ("report",)),
    **dict.fromkeys(("start", "soak", "exec"), ("run",)),
    **dict.fromkeys(("kill", "abort", "cancel", "end"), ("stop",)),
    **dict.fromkeys(("continue", "restart", "recover"), ("resume",)),
    **dict.fromkeys(("new", "create", "generate", "wizard", "template"), ("init",)),
    **dict.fromkeys(("analyse", "analyze", "evaluate", "rejudge", "replay", "verdict"), ("judge",)),
    **dict.fromkeys(("diff",), ("compare",)),
    **dict.fromkeys(("heap", "profile", "memory", "leak"), ("diagnose",)),
    **dict.fromkeys(("web", "ui", "server", "gui"), ("serve", "open")),
    **dict.fromkeys(("schedule", "enqueue", "cron", "at"), ("submit",)),
    **dict.fromkeys(("jobs", "schedules"), ("queue",)),
    **dict.fromkeys(("user", "users", "tokens", "role", "roles"), ("token",)),
    **dict.fromkeys(("mark", "annotate", "tag"), ("event", "note")),
    **dict.fromkeys(("scan", "discover", "ping", "test"), ("probe", "check")),
    **dict.fromkeys(("matrix", "sweep", "batch", "suite"), ("campaign",)),
    **dict.fromkeys(("grafana", "dashboard"), ("dashboards",)),
    **dict.fromkeys(("pack", "zip", "save"), ("bundle", "archive")),
    **dict.fromkeys(("sign",), ("seal",)),
    **dict.fromkeys(("csv", "parquet", "dump"), ("export",)),
    **dict.fromkeys(("sql", "ask", "duckdb", "find"), ("query",)),
    **dict.fromkeys(("quickstart", "example", "tutorial"), ("demo",)),
    **dict.fromkeys(("plugins", "sources"), ("pollers", "loads")),
    **dict.fromkeys(("detectors", "thresholds"), ("rules",)),
    "help": ("--help",),
    "version": ("--version",),
}
"""Other programs' words for commands."""


def brief(summary: str) -> str:
    """The first clause of a command's summary, for a list of one line each.

    >>> brief("Check a plan: parse it, poll every source"), brief("Show the runs that go on now, in whatever folders")
    ('Check a plan', 'Show the runs that go on now')
    """
    for mark in (":", ";", ",", " ("):
        summary = summary.partition(mark)[0]
    return summary.strip()


def other_word(word: str, summary: Callable[[str], str]) -> str:
    """The error message for a word that other programs use for a command of ours; "" for any other word.

    >>> other_word("validate", {"check": "Check a plan: parse it"}.__getitem__)
    "there is no command 'validate': use 'soakwatch check' (check a plan)"
    """
    meant = SYNONYMS.get(word.lower(), ())
    parts = []
    for name in meant:
        what = "" if name.startswith("-") else brief(summary(name))
        parts.append(f"'soakwatch {name}'" + (f" ({what[0].lower()}{what[1:]})" if what else ""))
    return f"there is no command {word!r}: use {' or '.join(parts)}" if parts else ""
