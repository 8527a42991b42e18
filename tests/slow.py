"""The slow tests, really run whole: file by file, resumable, with a table of what was tried at the end.

``tests/run -m slow`` calls it. What was done is kept for the code that it was done with, so a second call goes on where
the first was ended; ``--again`` begins anew. ``--write`` puts the table of a whole run into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from tests.durations import ROOT, Outcome, kept, ordered, outcomes, record

PAGE = ROOT / "docs" / "reliability.md"
KEPT = Path(__file__).with_name("durations-slow.json")
_TABLE = re.compile(r"(<!-- tests/run -m slow -->\n).*?(<!-- / -->)", re.DOTALL)
_HEAD = "| what | tests | attempts | failures | min |\n|---|---|--:|--:|--:|"


def slow_files(root: Path) -> list[str]:
    """The files of tests that have slow ones."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in files if "mark.slow" in path.read_text(encoding="utf-8")]


def state_of(root: Path) -> str:
    """A name for what is tested: all that the commit holds and what differs from it, but for pages."""
    code = [".", ":!docs", ":!*.md", ":!tests/durations*.json"]
    committed = _git(root, "ls-tree", "-r", "HEAD").splitlines()
    content = [line for line in committed if not re.search(r"\t(docs/|tests/durations)|\.md$", line)]
    changed = _git(root, "diff", "HEAD", "--", *code) + _git(root, "status", "--porcelain", "--", *code)
    return hashlib.sha256("\n".join([*content, changed]).encode()).hexdigest()[:16]


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True)
class SlowRun:
    """One run of the slow tests of a checkout, with what is kept of it in a folder."""

    root: Path
    folder: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def ended(self) -> list[Outcome]:
        """The tests that ended; of one that ran twice the last time."""
        return list({one.test: one for one in outcomes(self.folder / "outcomes")}.values())

    def left(self, files: Iterable[str]) -> list[str]:
        """The files that are not done, the longest first; those that may wait for influxd to be built last."""
        done = self._done()
        texts = {name: (self.root / name).read_text(encoding="utf-8") for name in files if name not in done}
        last = frozenset(name for name, text in texts.items() if "influxd" in text)
        return ordered(texts, kept(KEPT), last)

    def _done(self) -> set[str]:
        path = self.folder / "done"
        return set(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else set()

    def run(self, name: str) -> str:
        """Runs the slow tests of a file that have not ended yet; a sentence of what became of them."""
        log = self.folder / f"{name.replace('/', '.')}.log"
        words = [sys.executable, "-m", "pytest", "-m", "slow", "-p", "no:cacheprovider", name]
        words += ["--outcomes", str(self.folder / "outcomes"), "--left"]
        with (
            log.open("a", encoding="utf-8") as file,
            subprocess.Popen(words, cwd=self.root, stdout=file, stderr=file) as one,
        ):
            self._running[name] = one
            code = one.wait()
        if code not in {0, 1, 5}:  # all passed, some failed, none was left
            return f"{name}: pytest ended with {code}, see {log}"
        with (self.folder / "done").open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
        mine = [one for one in self.ended if one.file == name]
        return f"{name}: {counted(mine)}" + (f", see {log}" if code == 1 else "")

    def end(self) -> None:
        """Ends what runs as Ctrl-C does, so that the servers of the tests end with them."""
        for one in self._running.values():
            if one.poll() is None:
                one.send_signal(signal.SIGINT)


def counted(ended: Sequence[Outcome]) -> str:
    """As pytest counts: what failed, passed and was skipped."""
    numbers = {kind: sum(one.outcome == kind for one in ended) for kind in ("failed", "passed", "skipped")}
    return ", ".join(f"{number} {kind}" for kind, number in numbers.items() if number) or "no tests"


def table(ended: Iterable[Outcome], root: Path) -> str:
    """In Markdown: a row for what a test tried many times, and one for all others of a file."""
    files: dict[str, list[Outcome]] = {}
    for one in sorted(ended, key=lambda one: one.file):
        files.setdefault(one.file, []).append(one)
    rows = []
    for name, mine in files.items():
        others = [one for one in mine if not one.tried]
        for one in mine:
            # What failed before it had counted is a failure still.
            failed = int(one.outcome == "failed" and not any(failures for _, _, failures in one.tried))
            for what, attempts, failures in one.tried:
                rows.append(_row(what, name, attempts, failures + failed, [one]))
        if others:
            failures = sum(one.outcome == "failed" for one in others)
            skipped = sum(one.outcome == "skipped" for one in others)
            what = _first_sentence(root / name) + (f" ({skipped} skipped)" if skipped else "")
            rows.append(_row(what, name, len(others) - skipped, failures, others))
    return "\n".join([_HEAD, *rows])


def _row(what: str, name: str, attempts: int, failures: int, tests: Sequence[Outcome]) -> str:
    minutes = sum(one.seconds.wall for one in tests) / 60
    return (
        f"| {what.replace('|', '/')} | `{name.removeprefix('tests/')}` | {attempts:,} | {failures:,} | {minutes:.1f} |"
    )


def _first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    return " ".join(re.split(r"(?<=\.)\s|\n\n", text, maxsplit=1)[0].split()).removesuffix(".")


def with_table(page: str, rows: str) -> str:
    """The page with the table in its place."""
    return _TABLE.sub(lambda match: f"{match[1]}{rows}\n{match[2]}", page)


def main(words: Sequence[str]) -> int:
    """Runs what is left, prints the table; 1 if a test failed or a file could not be run to its end."""
    parser = argparse.ArgumentParser(prog="tests/run -m slow", description=__doc__)
    parser.add_argument("-n", type=int, default=4, metavar="N", help="files at a time (4)")
    parser.add_argument("--again", action="store_true", help="begin anew, whatever was done with this code")
    parser.add_argument("--write", action="store_true", help="put the table of the whole run into docs/reliability.md")
    options = parser.parse_args(words)
    run = SlowRun(ROOT, ROOT / ".venv" / "slow" / state_of(ROOT))
    if options.again:
        shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True, exist_ok=True)
    files = slow_files(ROOT)
    left = run.left(files)
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say(f"{len(left)} of {len(files)} files of slow tests are left; {run.folder} has what is done")
    with ThreadPoolExecutor(options.n) as crew:
        running = [crew.submit(run.run, name) for name in left]
        try:
            for number, one in enumerate(as_completed(running), len(files) - len(left) + 1):
                say(f"{number}/{len(files)} {one.result()}")
        except KeyboardInterrupt:
            crew.shutdown(wait=False, cancel_futures=True)
            run.end()
            raise
    ended = run.ended
    failed = [one.test for one in ended if one.outcome == "failed"]
    broken = run.left(files)
    rows = table(ended, ROOT)
    if options.write:
        if broken:
            say(f"not all has run, so {PAGE.name} stays as it is: {', '.join(broken)}")
        else:
            PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
            record(ended, KEPT)
    said = [rows, *(f"FAILED {test}" for test in failed), *(f"NOT RUN TO ITS END {name}" for name in broken)]
    sys.stdout.write("\n".join([*said, f"{counted(ended)} in {(time.monotonic() - begun) / 60:.0f} min", ""]))
    return int(bool(failed or broken))


def say(text: str) -> None:
    """On standard error, at once."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
