"""A healthy device: nginx under wrk, both from Debian, stands its soak and passes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from soakwatch.record import RecordView
from soakwatch_model.finding import Outcome
from soakwatch_testing.ports import free_port

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


def shortened(port: int, pidfile: Path) -> dict[str, Any]:
    """The example's plan with a minute of load instead of 28, on a port of its own; rest, load, rest as in the file."""
    plan: dict[str, Any] = yaml.safe_load((EXAMPLE / "plan.yaml").read_text())
    plan["phases"] = [{"baseline": "10s"}, {"soak": "50s"}, {"recovery": "10s"}]
    plan["targets"]["nginx"]["watch"] = {"processes": [{"pidfile": str(pidfile), "name": "nginx"}]}
    (shell, flag, line) = plan["targets"]["wrk"]["sources"][0]["command"]["run"]
    for of_the_file, here in (
        ("sleep 120;", "sleep 10;"),
        ("deploy/examples/nginx-wrk/load", f"{EXAMPLE}/load"),
        ("18080", str(port)),
        (" 1680;", " 50;"),
    ):
        assert line.count(of_the_file) == 1
        line = line.replace(of_the_file, here)
    plan["targets"]["wrk"]["sources"][0]["command"]["run"] = [shell, flag, line]
    del plan["targets"]["host"]  # told, not judged: all probes of this machine each second are most of the run's work
    # a run of seconds loses polls while the machine does much besides
    plan["rules"] = {"coverage": {"floor": "80%", "gap": "20%"}}
    return plan


@pytest.mark.slow
@pytest.mark.usefixtures("nginx")
def test_nginx_under_wrk_passes(soakwatch: Command, tmp_path: Path, port: int) -> None:
    """Exit code 0, no rule failed, and wrk's figures beside the device's, though it is silent until the soak."""
    (tmp_path / "plan.yaml").write_text(json.dumps(shortened(port, tmp_path / "nginx" / "nginx.pid")))
    checked = soakwatch("check", "plan.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = soakwatch("run", "plan.yaml", "--into", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nginx: no rule failed" in done.stdout
    with RecordView.open(tmp_path / "run") as view:
        (rate,) = view.keys(["load.request.rate"])
        assert view.series(rate).values.min() > 0
        (baseline, soak, _) = view.phases()
        assert baseline.window.end_ns < view.series(rate).time_ns[0] < soak.window.end_ns
        (loss,) = [f for f in view.findings(live=False) if (f.rule, f.target) == ("loss", "nginx")]
        assert loss.outcome is Outcome.PASS
        assert loss.numbers["offered"] > 0
