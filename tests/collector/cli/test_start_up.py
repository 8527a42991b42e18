"""What a command imports before it does its work: the time that it takes to begin, counted without a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from soakwatch_testing.records import judged_run

_PLAN = "duration: 10m\ntargets:\n  dut:\n    sources: [{local: {interval: 1s, probes: [load]}}]\n"
_RUN = frozenset({"asyncssh", "httpx", "starlette", "uvicorn", "pysnmp", "gufo", "apscheduler", "MLRsearch"})
"""What only a run, its sources or its page need."""
_DRAWING = frozenset({"jinja2", "tsdownsample"})
_CODE = """
import json, sys
from soakwatch.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def _begun(folder: Path, *words: str) -> tuple[int, set[str]]:
    """The exit code of a command, and the top packages that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=300
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, {name.partition(".")[0] for name in modules}


def test_a_check_begins_with_what_it_uses(tmp_path: Path) -> None:
    """It judges and draws nothing."""
    (tmp_path / "plan.yaml").write_text(_PLAN)
    code, modules = _begun(tmp_path, "check", "plan.yaml", "--no-connect")
    assert code == 0
    assert not modules & (_RUN | _DRAWING | {"scipy", "rich", "pandas", "pyarrow"})


def test_a_judgement_begins_with_what_it_uses(tmp_path: Path) -> None:
    """It polls nothing, serves nothing and draws nothing."""
    judged_run(tmp_path / "run", packets_per_s=1000.0)
    _, modules = _begun(tmp_path, "judge", "run")
    assert not modules & (_RUN | _DRAWING | {"asyncio", "psutil", "soakwatch_agent", "pandas", "pyarrow"})


def test_a_report_begins_with_what_it_uses(tmp_path: Path) -> None:
    """It polls nothing and serves nothing."""
    judged_run(tmp_path / "run", packets_per_s=1000.0)
    code, modules = _begun(tmp_path, "report", "run", "--html")
    assert code == 0
    assert not modules & (_RUN | {"asyncio", "psutil", "soakwatch_agent", "pandas", "pyarrow"})
