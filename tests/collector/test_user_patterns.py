"""Regular expressions of users, in every place where a plan or a profile takes one: none holds a command, and what is
refused is named with its place."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.commands import command_in
from tests.in_process import command_here

TEXT = "zq" * 100 + "!"
"""On which Python's ``((zq)+)+$`` takes longer than anybody lives."""
PLAN = """\
duration: 10s
labels:
  release: {{command: [printf, "%s", "{text}"], pattern: '{pattern}'}}
watch: {{processes: [{{cmdline: '{pattern}', name: worm}}]}}
targets:
  dut:
    sources:
      - local: {{probes: [process]}}
      - http: {{url: "{url}", values: [{{metric: system.sessions, regex: '{pattern}', labels: {{table: x}}}}]}}
      - prometheus:
          url: "{url}"
          metrics:
            - {{from: up, metric: system.sessions, labels: {{table: y}}, where: {{job: '{pattern}'}}}}
            - {{from: up, metric: system.processes}}
"""
TABLE = (
    "  tg: {{role: generator, sources: [{{csv: {{file: tg.csv, time_format: s, where: {{kind: '{pattern}'}}}}}}]}}\n"
)
PROFILE = """\
title: box
select: [{{object_id: "1.3.6.1.4.1.99", description: '{pattern}'}}]
snmp:
  groups:
    g:
      columns: {{a: 1.3.6.1.4.1.99.1.1}}
      where: {{a: '{pattern}'}}
      metrics: [{{metric: system.cpu.utilization, value: a, match: '{pattern}'}}]
logs: [{{kind: process.crash, match: '{pattern}'}}]
cli:
  commands: {{show_x: {{run: show x, lines: [{{match: '{pattern}', facts: {{model: x}}}}]}}}}
"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f'up{{job="{TEXT}"}} 1\n'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Nothing: a test reads the output."""


@contextmanager
def _page() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _worm() -> Iterator[None]:
    """A process whose command line is the text."""
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", TEXT], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.communicate()


def test_no_expression_of_a_plan_holds_a_command(tmp_path: Path) -> None:
    """That of a label, a process, a page and an exporter's label, each on a text that would hold Python's: the
    test ends."""
    with _page() as url, _worm():
        (tmp_path / "plan.yaml").write_text(PLAN.format(pattern="((zq)+)+$", text=TEXT, url=url), encoding="utf-8")
        done = command_in(tmp_path)("check", "plan.yaml", "--verbose")
    assert done.returncode == 1
    assert "nothing in its output matches '((zq)+)+$'" in done.stderr
    assert "no process 'worm' is running" in done.stderr
    assert "nothing in the page matches the regular expression" in done.stdout + done.stderr


def test_what_re2_has_not_is_refused_with_its_place(tmp_path: Path) -> None:
    """Every place at once, by the checks of a plan and of a folder of profiles."""
    words = (PLAN + TABLE).format(pattern="up(?= now)", text=TEXT, url="http://127.0.0.1:9/")
    (tmp_path / "plan.yaml").write_text(words, encoding="utf-8")
    (tmp_path / "box.yaml").write_text(PROFILE.format(pattern="up(?= now)"), encoding="utf-8")
    run = command_here(tmp_path)
    plan, profile = run("check", "plan.yaml", "--no-connect"), run("profiles", "--folder", ".", "box")
    assert (plan.returncode, profile.returncode) == (2, 2)
    told = [line for line in plan.stderr.splitlines() if "has a look-ahead, (?=: write" in line]
    assert [line.split(":")[2] for line in told] == ["3", "4", "9", "13", "15"]
    told = [line for line in profile.stderr.splitlines() if "has a look-ahead, (?=: write" in line]
    assert [line.split(":")[2] for line in told] == ["2", "7", "8", "9", "11"]
