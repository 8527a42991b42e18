"""A healthy device: nginx under wrk, both from Debian, stands its soak and passes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from soakwatch.record import RecordView
from soakwatch.testing.ports import free_port

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Until = Callable[[Callable[[], bool], str], None]

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "nginx-wrk"


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    return free_port()


@pytest.fixture
def nginx(tmp_path: Path, port: int, until: Until) -> Iterator[subprocess.Popen[bytes]]:
    """The example's nginx on a port of its own."""
    for program in ("nginx", "wrk"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            if os.environ.get("CI"):
                pytest.fail(f"{program} is not installed: tests/run installs it")
            pytest.skip(f"{program} is not installed")
    folder = tmp_path / "nginx"
    folder.mkdir()
    configuration = folder / "nginx.conf"
    configuration.write_text((EXAMPLE / "nginx.conf").read_text().replace("18080", str(port)))
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([program, "-p", folder, "-c", configuration], stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(answers, "nginx listening")
    yield process
    process.terminate()
    process.wait()


def test_nginx_under_wrk_passes(soakwatch: Command, tmp_path: Path, port: int, nginx: subprocess.Popen[bytes]) -> None:
    """Exit code 0, every check passed, and wrk's figures beside the device's."""
    plan = {
        "name": "nginx",
        "phases": [{"soak": "40s"}],
        "targets": {
            "nginx": {
                "role": "dut",
                "sources": [{"local": {"interval": "1s", "probes": ["process"]}}],
                "watch": {"processes": [{"pid": nginx.pid, "name": "nginx master"}]},
            },
            "wrk": {
                "role": "generator",
                "sources": [
                    {"command": {"interval": "5s", "run": [f"{EXAMPLE}/load", f"http://127.0.0.1:{port}/", "40"]}}
                ],
            },
        },
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    checked = soakwatch("check", "plan.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = soakwatch("run", "plan.yaml", "--into", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nginx: no rule failed" in done.stdout
    with RecordView.open(tmp_path / "run") as view:
        (rate,) = view.keys(["load.request.rate"])
        assert view.series(rate).values.min() > 100
        against = [f for f in view.findings(live=False) if f.outcome.value not in {"pass", "not applicable"}]
    assert {f.outcome.value for f in against} == {"inconclusive"}
    assert {f.rule for f in against} <= {
        "growth",
        "latency",
        "loss",
        "performance_decline",
        "periodic_pause",
        "step_change",
    }
