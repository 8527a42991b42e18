"""The plan and its scripts written out again, so that the run can be repeated from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch.cli.main import run as main
from soakwatch.core.redaction import Redaction
from soakwatch.core.yaml import Plain
from soakwatch.plan.kept_scripts import KIND, MASKED, MAX_BYTES, scripts_to_keep
from soakwatch.record import RecordView

PLAN = """\
name: repeat
duration: 2s
targets:
  dut: {role: dut, sources: [{tcp: {host: 127.0.0.1, port: 1, interval: 1s}}]}
events:
  - {kind: switch, at: 1s, run: [./tools/switch.sh, a]}
hooks:
  - {on: start, run: [python3, hello.py]}
  - {on: end, run: [sh, -c, "true"]}
"""
SWITCH = "#!/bin/sh\nPASSWORD='hunter2 and more'\nTOKEN=$TOKEN\necho switched\n"


@pytest.mark.slow
def test_a_run_is_repeated_from_its_record(tmp_path: Path) -> None:
    """The scripts that a run executed come back where its plan looks for them, without a literal secret."""
    soakwatch = command_in(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "switch.sh").write_text(SWITCH)
    (tmp_path / "tools" / "switch.sh").chmod(0o755)
    (tmp_path / "hello.py").write_text("print('hello')\n")
    (tmp_path / "plan.yaml").write_text(PLAN)
    soakwatch("run", "plan.yaml")
    (tmp_path / "tools" / "switch.sh").write_text("#!/bin/sh\necho changed since\n")
    done = soakwatch("export", "last", "--plan", "--output", "again")
    assert done.returncode == 0, done.stderr
    again = tmp_path / "again"
    assert sorted(path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file()) == [
        *("hello.py", "plan.yaml", "tools/switch.sh")
    ]
    assert (again / "tools" / "switch.sh").read_text() == SWITCH.replace("'hunter2 and more'", "***")
    assert os.access(again / "tools" / "switch.sh", os.X_OK)
    assert "secrets were replaced by ***" in done.stderr
    with RecordView.open(next((tmp_path / "runs").iterdir())) as view:
        assert view.meta("plan") == (again / "plan.yaml").read_text()
        assert sorted(entry.about for entry in view.artifact_entries() if entry.kind == KIND) == [
            *("./tools/switch.sh", "hello.py")
        ]
    assert soakwatch("export", "last", "--plan", "--output", "again").returncode == 2


CAMPAIGN = """\
name: sizes
plan:
  name: sizes
  duration: 3s
  targets:
    dut: {role: dut, sources: [{local: {interval: 1s}}]}
    tg: {role: generator, sources: [{command: {run: [sh, tools/load.sh], interval: 500ms}}]}
matrix: {size: ["64", "1518"]}
labels: {bench: it's ours}
before: [./tools/bench.sh, sizes, "size={size}", "{folder}/ready.txt"]
after: [sh, tools/clean.sh, "{size}"]
"""
BENCH = """\
#!/bin/sh
here=$(dirname "$0")
cat "$here/$1/rate.txt" >"$here/now.txt"
echo "$2 $SOAKWATCH_BENCH $SOAKWATCH_SIZE" >"$3"
"""
LOAD = """\
n=0
while true; do n=$((n + $(cat tools/now.txt))); echo "load.tx.packets $n, load.rx.packets $n"; sleep 0.2; done
"""


@pytest.mark.slow
def test_a_run_of_a_campaign_is_repeated_with_what_was_done_around_it(tmp_path: Path) -> None:
    """What came before and after it, with the file that its words name: the exported folder needs nothing else."""
    lab = tmp_path / "lab"
    (lab / "tools" / "sizes").mkdir(parents=True)
    for name, text in (("bench.sh", BENCH), ("load.sh", LOAD), ("clean.sh", "rm tools/now.txt\n")):
        (lab / "tools" / name).write_text(text)
    (lab / "tools" / "bench.sh").chmod(0o755)
    (lab / "tools" / "sizes" / "rate.txt").write_text("100\n")
    (lab / "tools" / "sizes" / "plan.yaml").write_text("name: of the bench\n")  # no place of the exported plan
    (lab / "campaign.yaml").write_text(CAMPAIGN)
    done = command_in(lab)("campaign", "run", "campaign.yaml", "--folder", "made", timeout=300)
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    record = lab / "made" / "runs" / "1518-r1" / "record.sqlite"
    record.rename(tmp_path / "record.sqlite")  # all that there is
    shutil.rmtree(lab)
    soakwatch = command_in(tmp_path)
    done = soakwatch("export", "record.sqlite", "--plan", "--output", "again")
    assert done.returncode == 0, done.stderr
    assert "a run of a campaign: again/campaign-before.sh, then soakwatch run again/plan.yaml" in done.stderr
    again = tmp_path / "again"
    assert sorted(path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file()) == [
        *("campaign-after.sh", "campaign-before.sh", "plan.yaml"),
        *("tools/bench.sh", "tools/clean.sh", "tools/load.sh", "tools/sizes/plan.yaml", "tools/sizes/rate.txt"),
    ]
    subprocess.run([again / "campaign-before.sh"], check=True, timeout=60)
    assert (again / "ready.txt").read_text() == "size=1518 it's ours 1518\n"
    ran = command_in(again)("run", "plan.yaml", timeout=300)
    assert ran.returncode in {0, 1, 3}, ran.stdout + ran.stderr
    (record,) = again.glob("runs/*/record.sqlite")
    with RecordView.open(record) as view:
        (key,) = view.keys(["load.rx.packets"])
        assert view.series(key).values.max() >= 100
    subprocess.run([again / "campaign-after.sh"], check=True, timeout=60)
    assert not (again / "tools" / "now.txt").exists()


def test_only_small_texts_of_people_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of the system, nothing binary, no private key, nothing large; secrets of the plan are taken out."""
    monkeypatch.setenv("LAB_WORD", "correct-horse")
    files = {
        "good.sh": b"#!/bin/sh\nlogin correct-horse\n",
        "binary": b"\x7fELF\0\0",
        "key.py": b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
        "large.py": b"#" * (MAX_BYTES + 1),
        "auth.py": b'api_key = "sk-123456"\ntoken = os.environ["TOKEN"]\ntoken = get_token()\n',
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    runs = [[f"{tmp_path}/good.sh"], [f"{tmp_path}/binary"], ["/bin/sh", "-c", "x"], ["/usr/bin/env", "true"]]
    runs += [["python3", "-u", f"{tmp_path}/{name}"] for name in ("key.py", "large.py", "auth.py")]
    runs += [["bash", f"{tmp_path}/missing.sh"], ["ssh", "dut", "./remote.sh"]]
    kept = scripts_to_keep({"hooks": [{"run": list(words)} for words in runs]}, Redaction(("env:LAB_WORD",)), 7)
    assert [Path(each.about).name for each in kept] == ["good.sh", "auth.py"]
    assert kept[0].data == b"#!/bin/sh\nlogin ***\n"
    assert kept[1].data == b'api_key = ***\ntoken = os.environ["TOKEN"]\ntoken = get_token()\n'
    assert {each.media for each in kept} == {MASKED}


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this machine has no files in memory")
def test_a_script_in_memory_is_kept() -> None:
    """/dev/shm is a place for files, and no device like the rest of /dev."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        script = Path(folder) / "switch.sh"
        script.write_text("#!/bin/sh\n")
        kept = scripts_to_keep({"hooks": [{"run": [str(script)]}, {"run": ["/dev/null"]}]}, Redaction(()), 7)
    assert [each.about for each in kept] == [str(script)]


def test_a_script_from_elsewhere_is_put_below_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An absolute path, one above the folder, and one that the record does not hold are said."""
    from soakwatch.record import Artifact, Record

    plan = PLAN.replace("./tools/switch.sh", "/opt/lab/switch.sh").replace("hello.py", "../../hello.py")
    with Record.create(tmp_path / "runs" / "old") as record:
        record.set_meta("plan", plan.replace('"true"', '"true"]}\n  - {on: end, run: [./lost.sh'))
        for number, about in enumerate(("/opt/lab/switch.sh", "../../hello.py"), 1):
            name = f"plan/{number}-{Path(about).name}"
            record.keep_artifact(Artifact(name, "text/plain", b"#!/bin/sh\n", 1, KIND, about))
    monkeypatch.chdir(tmp_path)
    assert main(["export", "old", "--plan", "--output", "again"]) == 0
    said = capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "again" / "scripts").iterdir()) == ["1-switch.sh", "2-hello.py"]
    assert "the plan runs /opt/lab/switch.sh: copy it there, or change the plan" in said
    assert "./lost.sh is not in the record" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "runs"]


def test_the_script_of_a_driven_generator_is_kept(tmp_path: Path) -> None:
    """A password in a test plan of JMeter is not."""
    script, rest = tmp_path / "soak.jmx", '</stringProp><stringProp name="path">/a</stringProp>'
    script.write_text(f'<stringProp name="Authenticator.password">hunter2{rest}')
    tg: Plain = {"sources": [{"jmeter": {"drive": True, "script": str(script)}}]}
    (kept,) = scripts_to_keep({"targets": {"tg": tg}}, Redaction(()), 7)
    assert kept.data.decode() == f'<stringProp name="Authenticator.password">***{rest}'
    assert kept.media == MASKED
