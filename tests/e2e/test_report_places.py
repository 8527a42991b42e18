"""``--junit FILE`` and its like: written where they were asked for, refused before the run, honest at its end."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S, SOAKWATCH, Command, Started, wait_until
from tests.in_process import command_here

from soakwatch.record import RecordView
from soakwatch.report.formats import FORMATS, IN_EVERY_RUN, OF_RUNS

PLAN = """\
name: quick
duration: {seconds}s
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [boot], required: false}}}}]}}}}
rules: {{coverage: {{required: false}}, gap: {{required: false}}, hang: {{required: false}}}}
"""
"""On a busy machine polls are missed: that does not count here."""
OPTIONS = OF_RUNS


def plan(folder: Path, seconds: float = 2) -> str:
    """A plan that passes."""
    (folder / "plan.yaml").write_text(PLAN.format(seconds=seconds), encoding="utf-8")
    return "plan.yaml"


def polled(run: Path) -> bool:
    """Whether a run has a poll."""
    if not (run / "record.sqlite").is_file():
        return False
    with RecordView.open(run) as view:
        return bool(view.last_due_ns())


def written(folder: Path, kind: str) -> Path:
    """Where that run wrote a format."""
    return folder / {"json": "run", "md": "summary/day"}.get(kind, "out") / FORMATS[kind].file


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run that wrote all its reports into a folder but for two: one elsewhere, one to standard output."""
    folder = tmp_path_factory.mktemp("places")
    words = ["run", plan(folder), "--into", "run", "--no-web", "--json", "-"]
    words += ["--reports", "out", "--md", "summary/day/"]
    (folder / "out").mkdir()
    (folder / "out/ctrf.json").write_text("of an earlier run", encoding="utf-8")
    return folder, command_here(folder)(*words)


def test_a_run_writes_its_reports_where_they_were_asked_for(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """With the folders above them, by their usual names in a folder, the same bytes as in the run's own folder; what
    else is printed goes to standard error where one of them is standard output."""
    folder, done = finished
    assert done.returncode == 0, done.stderr
    assert done.stdout == (folder / "run/verdict.json").read_text(encoding="utf-8")
    assert "✓ PASS" in done.stderr
    assert {path.name for path in (folder / "out").iterdir()} == {
        FORMATS[kind].file for kind in OPTIONS if kind not in {"json", "md"}
    }
    for kind in IN_EVERY_RUN:
        assert written(folder, kind).read_bytes() == (folder / "run" / FORMATS[kind].file).read_bytes()
    assert json.loads((folder / "out/ctrf.json").read_text(encoding="utf-8"))["results"]["extra"]["exitCode"] == 0


def test_report_and_judge_write_the_same_bytes_as_the_run(
    finished: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Also in the folder of the run, where a file is as private as the record."""
    folder, _ = finished
    for command in ("report", "judge"):
        words = [word for kind in OPTIONS for word in (f"--{kind}", tmp_path / command / FORMATS[kind].file)]
        done = command_here(folder)(command, "run", *words)
        assert done.returncode == 0, done.stderr
        for kind in OPTIONS:
            made = tmp_path / command / FORMATS[kind].file
            assert made.read_bytes() == written(folder, kind).read_bytes(), kind
    assert command_here(folder)("report", "run", "--badge", "--attest").returncode == 0
    assert stat.S_IMODE((folder / "run/badge.svg").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--junit", "plan.yaml/j.xml"), "--junit: plan.yaml/j.xml cannot be written"),
        (("--junit", "plan.yaml/deep/j.xml"), "plan.yaml is no folder"),
        (("--md", "/proc/soak/s.md"), "--md: /proc/soak/s.md cannot be written"),
        (("--ctrf", "x" * 300), "File name too long"),
        (("--junit", "plan.yaml"), "--junit: plan.yaml cannot be written (it is named as a plan or record)"),
        (("--ctrf", ""), "--ctrf names no file"),
        (("--reports", ""), "--reports names a folder, such as --reports out, not ''"),
        (("--reports", "-"), "--reports names a folder, such as --reports out, not '-'"),
        (("--md", "-", "--json", "-"), "--json and --md both go to standard output: name another file for one"),
        (("--md", "out/a", "--junit", "./out/a"), "--junit and --md both go to out/a: name another file for one"),
    ],
    ids=[
        "below a file",
        "far below a file",
        "no rights",
        "too long",
        "a plan",
        "empty",
        "no folder",
        "printed folder",
        "two printed",
        "two in one",
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Exit 2, with the option, the file and the reason; nothing was made, and nothing was removed."""
    plan(tmp_path)
    for command in (("run", "plan.yaml", "--into", "run", "--no-web"), ("judge", "night.csv")):
        (tmp_path / "night.csv").write_text("time,cpu\n2026-11-14T20:00:00Z,1\n", encoding="utf-8")
        done = command_here(tmp_path)(*command, *words)
        assert done.returncode == 2
        assert said in " ".join(done.stderr.split())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["night.csv", "plan.yaml"]


def test_pipes_links_and_devices_get_a_report_as_files_do(
    finished: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """A pipe of a shell, /dev/stdout, a link to a file, which stays a link, and /dev/null, which stays what it is."""
    folder, _ = finished
    (tmp_path / "link").symlink_to(tmp_path / "real.xml")
    words = f"--md >(cat >piped.md) --json /dev/stdout --junit {tmp_path}/link --ctrf /dev/null"
    shell = f"cd {tmp_path}; {SOAKWATCH} report {folder}/run {words} | cat; wait"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=MAX_WAIT_S, check=True)
    assert done.stdout.startswith(written(folder, "json").read_text(encoding="utf-8"))
    wait_until(
        lambda: (tmp_path / "piped.md").read_bytes() == written(folder, "md").read_bytes(), "the text of the pipe"
    )
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.xml").read_bytes() == written(folder, "junit").read_bytes()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_what_only_one_run_has_is_refused_for_several(tmp_path: Path) -> None:
    """JUnit of several records, and an attestation of a table, which no seal covers."""
    judge = command_here(tmp_path)
    (tmp_path / "night.csv").write_text("time,cpu\n2026-11-14T20:00:00Z,1\n", encoding="utf-8")
    assert "--junit: only valid for one RUN" in judge("judge", "a", "b", "--junit", "j.xml").stderr
    assert "has no seal to attest" in judge("judge", "night.csv", "--attest", "a.json").stderr
    assert judge("judge", "night.csv", "--reports", "all").returncode == 3
    files = {FORMATS[kind].file for kind in OPTIONS if kind != "attest"}
    assert {path.name for path in (tmp_path / "all").iterdir()} == files


def test_all_reports_of_a_record_without_a_seal_are_all_but_the_attestation(tmp_path: Path) -> None:
    """A note says why; whoever asks for the attestation itself gets an error."""
    here = command_here(tmp_path)
    (tmp_path / "night.csv").write_text("time,cpu\n2026-11-14T20:00:00Z,1\n2026-11-14T20:00:01Z,1\n", encoding="utf-8")
    assert here("import", "night.csv").returncode == 0
    next((tmp_path / "runs").iterdir()).rename(tmp_path / "run")
    done = here("report", "run", "--reports", "all")
    assert done.returncode == 0
    assert "note: --attest all/test-result.intoto.json was not written: run is not sealed, so" in done.stderr
    assert len(list((tmp_path / "all").iterdir())) == len(OPTIONS) - 1
    refused = here("report", "run", "--attest")
    assert refused.returncode == 2
    assert "there is no digest to attest: soakwatch seal run" in refused.stderr
    assert here("seal", "run").returncode == 0
    assert here("report", "run", "--attest").returncode == 0


def test_a_file_that_cannot_be_written_at_the_end_is_named_and_the_exit_code_is_the_verdicts(
    tmp_path: Path, started: Started
) -> None:
    """A folder that was taken away meanwhile by a file of its name; the other report is written. The old file of an
    earlier run was removed when the run began."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/j.xml").write_text("old", encoding="utf-8")
    process = started(
        "run", plan(tmp_path, 60), "--into", "run", "--no-web", "--junit", "out/j.xml", "--md", "s.md", "--ctrf", "new/"
    )
    wait_until(lambda: polled(tmp_path / "run"), "a poll")
    assert not (tmp_path / "out/j.xml").exists()
    (tmp_path / "out").rmdir()
    (tmp_path / "out").write_text("", encoding="utf-8")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 3, output  # it ended early
    remedy = "put that right, then write it with soakwatch report run --junit out/j.xml"
    assert f"soakwatch: out/j.xml cannot be written: File exists: {remedy}" in output
    assert (tmp_path / "s.md").is_file()
    assert (tmp_path / "new/ctrf.json").is_file()
    (tmp_path / "out").unlink()
    assert command_here(tmp_path)("report", "run", "--junit", "out/j.xml").returncode == 0
    assert (tmp_path / "out/j.xml").read_bytes() == (tmp_path / "run/junit.xml").read_bytes()


@pytest.mark.slow
def test_a_run_that_was_killed_writes_its_reports_when_it_is_resumed(
    tmp_path: Path, started: Started, soakwatch: Command
) -> None:
    """The killed run left none, also not that of an earlier run; resume writes what it is told to."""
    (tmp_path / "j.xml").write_text("old", encoding="utf-8")
    process = started("run", plan(tmp_path, 3), "--into", "run", "--no-web", "--junit", "j.xml")
    wait_until(lambda: polled(tmp_path / "run"), "a poll")
    process.kill()
    process.wait()
    assert not (tmp_path / "j.xml").exists()
    resumed = soakwatch("resume", "run", "--no-web", "--junit", "j.xml", "--attest", "a.json")
    assert resumed.returncode in {0, 3}
    assert (tmp_path / "j.xml").read_bytes() == (tmp_path / "run/junit.xml").read_bytes()
    predicate = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["predicate"]
    assert (predicate["result"] == "FAILED") == (resumed.returncode == 3)
