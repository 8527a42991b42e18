"""A real run feeds a real InfluxDB, and is judged and imported from there: the verdict is the same."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch_testing.influxd import BUCKET, ORG, start_influxd

PLAN = """\
name: fed
duration: 8s
labels: {{release: "7.2", shell: {{command: [echo, dash 0.5]}}}}
targets:
  dut: {{role: dut, sources: [local: {{interval: 1s}}]}}
sinks: [{{influxdb: {{url: "{url}", org: {org}, bucket: {bucket}, token: env:INFLUX_TOKEN}}}}]
"""


def soakwatch(*arguments: str, cwd: Path, token: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return command_in(cwd, INFLUX_TOKEN=token)(*arguments)


@pytest.mark.slow
def test_a_run_is_judged_from_the_database_as_from_its_record(influxd_program: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = start_influxd(influxd_program, tmp_path / "server", stack)
        (tmp_path / "plan.yaml").write_text(PLAN.format(url=server.url, org=ORG, bucket=BUCKET), encoding="utf-8")
        ran = soakwatch("run", "plan.yaml", "--no-web", cwd=tmp_path, token=server.token)
        (folder,) = (tmp_path / "runs").iterdir()
        here = soakwatch("judge", str(folder), "--json", "record.json", cwd=tmp_path, token=server.token)
        assert here.returncode == ran.returncode, ran.stderr
        address = f"influxdb://127.0.0.1:{server.port}/{BUCKET}?org={ORG}&token=env:INFLUX_TOKEN"
        this = f"{address}&run={folder.name}"
        there = soakwatch("judge", this, "--json", "database.json", cwd=tmp_path, token=server.token)
        assert there.returncode == here.returncode, there.stderr
        first, second = ((tmp_path / f"{name}.json").read_text(encoding="utf-8") for name in ("record", "database"))
        assert len(json.loads(first)["findings"]) > 20
        record, database = json.loads(first), json.loads(second)
        assert record.pop("seal")["digest"] in ran.stdout
        assert database.pop("seal") is None  # it is the record that is sealed
        assert record == database
        assert json.loads(second)["labels"] == {"release": "7.2", "shell": "dash 0.5"}
        assert ": complete" in there.stderr

        imported = soakwatch("import", this, "--label", "release=7.2", "copy=yes", cwd=tmp_path, token=server.token)
        assert imported.returncode == 0, imported.stderr
        (copy,) = (entry for entry in (tmp_path / "runs").iterdir() if entry != folder)
        assert copy.name.endswith("-fed")
        again = soakwatch("judge", str(copy), "--json", "copy.json", cwd=tmp_path, token=server.token)
        assert again.returncode == here.returncode
        copied = json.loads((tmp_path / "copy.json").read_text(encoding="utf-8"))
        assert copied.pop("labels") == {"release": "7.2", "shell": "dash 0.5", "copy": "yes"}
        assert copied.pop("seal") is None
        assert copied.items() <= record.items()
        page = soakwatch("report", str(copy), "--html", "report.html", cwd=tmp_path, token=server.token)
        assert page.returncode == 0, page.stderr

        wrong = soakwatch("judge", this, cwd=tmp_path, token="hunter2")
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
        assert "does not authorise this token to read" in wrong.stderr
        assert "hunter2" not in wrong.stderr
        gone = soakwatch("import", f"{address}&run=nothing", cwd=tmp_path, token=server.token)
        assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)
        assert f"holds no run 'nothing'; known here: {folder.name}" in gone.stderr
        assert len(list((tmp_path / "runs").iterdir())) == 2
