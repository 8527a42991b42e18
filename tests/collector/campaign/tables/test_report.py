"""``soakwatch campaign report``: tables, files and exit codes from real records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.collector.campaign.tables.folders import PLAN, Ran, campaign_folder
from tests.commands import Command

from soakwatch.cli.main import run

YAML = f"""\
name: sizes
labels: {{release: RELEASE}}
{PLAN}matrix:
  size: {{set: targets.gen.sources.0.command.run.1, values: ['64', '512']}}
  load: {{set: targets.gen.sources.0.command.run.2, values: [20%, 25%]}}
exclude: [{{size: 512, load: 25%}}]
repeat: 7
figures:
  - {{figure: load.rx.packet.rate, name: received}}
  - load.loss
tables:
  - {{rows: size, columns: load, rivals: [size, load]}}
"""
STEPS = (0.996, 0.998, 0.999, 1.0, 1.001, 1.002, 1.004)


def runs_of(level: float = 1.0, *, lost: bool = False) -> dict[tuple[str, ...], list[Ran]]:
    """Seven runs a cell that differ by 0.4 %; loss is read in one of the cells only."""
    made: dict[tuple[str, ...], list[Ran]] = {
        ("64", "20%"): [Ran(figures={"load.rx.packet.rate": 1e6 * level * step, "load.loss": 0.0}) for step in STEPS],
        ("64", "25%"): [Ran(figures={"load.rx.packet.rate": 2e6 * level * step}) for step in STEPS],
        ("512", "20%"): [Ran(figures={"load.rx.packet.rate": 5e5 * step}) for step in STEPS],
    }
    if lost:
        made["512", "20%"][6] = Ran("lost", reason="the monitor was killed")
    return made


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str


Reports = Callable[..., Said]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reports:
    """Runs commands of ``soakwatch campaign`` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def said(*words: object) -> Said:
        code = run(["campaign", *map(str, words)])
        shown = capsys.readouterr()
        return Said(code, shown.out, shown.err)

    return said


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns: the new release forwards 7 % less of small packets."""
    folder = tmp_path_factory.mktemp("campaigns")
    campaign_folder(folder / "v2.2", YAML.replace("RELEASE", "v2.2"), runs_of(lost=True))
    campaign_folder(folder / "v2.3", YAML.replace("RELEASE", "v2.3"), runs_of(0.93))
    return folder


def test_tables_are_shown_in_the_terminal(soakwatch: Command, campaigns: Path) -> None:
    """Verdict, extent, doubts and a table for each figure; a lost run keeps it from passing."""
    done = soakwatch("campaign", "report", campaigns / "v2.2")
    assert (done.returncode, done.stderr) == (3, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "? INCONCLUSIVE  campaign sizes"
    assert lines[1] == "1 of 21 runs without a verdict"
    assert lines[2] == "2 size × 2 load: 3 cells of 7 runs each; 20 ended, 1 lost"
    assert "! doubt  1 run lost, in 1 cell: size=512,load=20%" in lines
    assert any(line.startswith("! doubt  load.loss is missing in 2 cells: the run has no load.loss") for line in lines)
    table = lines[lines.index("received (k packets/s)") :]
    assert table[1].split() == ["size", "\\", "load", "20%", "25%"]
    assert table[2].split() == ["64", "1,000", "[996.0,", "1,004]", "2,000", "[1,992,", "2,008]", "best"]
    assert table[3].split()[:4] == ["512", "499.8", "[498.0,", "501.0]"] or "excluded" in table[3]
    assert "(6 of 7 runs)" in table[3]
    assert table[4].strip() == "6 of 7 runs: lost: the monitor was killed (size 512, load 20%)"
    assert done.stdout.count("the monitor was killed") == 2, "once below each of the two tables with figures"


def test_a_regression_against_an_earlier_campaign_fails(report: Reports, campaigns: Path) -> None:
    """The cells that fell are named with the interval; the one that did not is equivalent."""
    done = report("report", campaigns / "v2.3", "--against", campaigns / "v2.2")
    assert (done.code, done.err) == (1, "")
    shown = done.out
    assert "received: v2.3 has 7 % less than v2.2 (interval -7." in shown
    assert shown.count("✗ fail") == 4, "two cells, each over the whole load and by phase time"
    assert "size 512, load 20%: v2.3 against v2.2" in shown
    assert "equivalent, 7 and 6 runs" in shown
    alone = report("report", campaigns / "v2.3")
    assert alone.code == 0, alone.out


def test_a_dip_is_found_by_phase_time(report: Reports, tmp_path: Path) -> None:
    """The median over the soak hides a dip in the first quarter; the part of the phase does not."""
    asked = YAML.partition("exclude:")[0].replace("['64', '512']", "['512']").replace("[20%, 25%]", "[30%]")
    asked += "repeat: 8\nfigures: [{figure: median(load.rx.packet.rate), name: received}]\n"
    for name, dip in (("v2.2", 1.0), ("v2.3", 0.5)):
        runs = [Ran(figures={"load.rx.packet.rate": 1e6 * (1 + step / 1e3)}, dip=dip) for step in range(8)]
        campaign_folder(tmp_path / name, asked.replace("RELEASE", name), {("512", "30%"): runs})
    done = report("report", "v2.3", "--against", "v2.2")
    assert done.code == 1, done.out
    assert "received, soak from 0 s to 3.33 s: v2.3 has up to 50 % less than v2.2" in done.out
    assert done.out.count("✗ fail") == 1
    assert "equivalent, 8 and 8 runs" in done.out


def test_files_hold_the_same(report: Reports, campaigns: Path, tmp_path: Path) -> None:
    """CSV in long form, JSON, Markdown and a page without a script from elsewhere."""
    names = ("c.csv", "c.json", "c.md", "c.html")
    words = [part for name in names for part in (f"--{name[2:]}", name)]
    done = report("report", campaigns / "v2.2", *words)
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines() == ["wrote c.html", "wrote c.md", "wrote c.csv", "wrote c.json"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "c.csv").read_text())))
    assert [(row["size"], row["load"], row["figure"]) for row in rows] == [
        (size, load, figure)
        for size, load in (("64", "20%"), ("64", "25%"), ("512", "20%"))
        for figure in ("received", "load.loss")
    ]
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["verdict"] == "inconclusive"
    for row, (cell, figure) in zip(rows, [(c, f) for c in data["cells"] for f in c["figures"]], strict=True):
        assert cell["values"] == {"size": row["size"], "load": row["load"]}
        assert row["figure"] == figure["figure"]
        for key in ("median", "low", "high", "min", "max"):
            assert row[key] == ("" if figure[key] is None else repr(figure[key]))
    assert float(rows[0]["median"]) == pytest.approx(1e6)
    assert rows[3]["median"] == ""
    assert rows[3]["reason"] == "the run has no load.loss"
    assert rows[4]["n"] == "6"
    assert "lost: the monitor was killed" in rows[4]["reason"]
    markdown = (tmp_path / "c.md").read_text()
    assert "| size \\\\ load | 20% | 25% |" in markdown
    assert "| 512 | 499.8 [498.0, 501.0] (6 of 7 runs: lost: the monitor was killed) | *excluded* |" in markdown or (
        "*excluded*" in markdown
    )
    page = (tmp_path / "c.html").read_text()
    assert "http" not in page.partition("</style>")[2].partition("<script>")[0]
    assert "v2.2/runs/64-20-r1/report.html" in page


def test_options_choose_the_table(report: Reports, campaigns: Path) -> None:
    """Rows, columns and figures; another expression than those of the file."""
    done = report("report", campaigns / "v2.3", "--table", "loadxsize", "--figure", "max(load.loss)")
    assert done.code == 0, done.err
    assert "loss, highest (%)" in done.out
    assert "load \\ size" in done.out
    assert "received" not in done.out.partition("loss, highest")[2]
    rows = report("report", campaigns / "v2.3", "--rows", "size,load", "--figure", "verdict")
    assert "size  load  verdict" in " ".join(rows.out.split("\n")).replace("   ", "  ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "nowhere is not a campaign folder: it has no ledger.jsonl; name campaigns/NAME"),
        (("v2.3", "--table", "sizexcolour"), "--table sizexcolour: write two axes with an x between them"),
        (("v2.3", "--figure", "load.lost"), "did you mean 'load.loss'?"),
        (("v2.3", "--against", "v2.2", "--margin", "much"), "'much' is not a share: write 5% or 0.05"),
        (("v2.3", "--against", "other"), "has no cell of this campaign"),
    ],
)
def test_mistakes_are_one_sentence(
    report: Reports, campaigns: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    """With the remedy, and exit code 2."""
    if "other" in words:
        other = YAML.replace("RELEASE", "v1").replace("['64', '512']", "['1024']").replace("exclude", "# exclude")
        campaign_folder(tmp_path / "other", other, {})
    for name in ("v2.2", "v2.3"):
        (tmp_path / name).symlink_to(campaigns / name)
    done = report("report", *words)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_the_file_of_a_campaign_is_checked_for_its_tables(report: Reports, tmp_path: Path) -> None:
    """Before the first run: the line of the mistake."""
    (tmp_path / "c.yaml").write_text(YAML.replace("columns: load", "columns: lode"), encoding="utf-8")
    done = report("plan", "c.yaml")
    assert done.code == 2
    assert "the matrix has no axis 'lode'; did you mean 'load'?" in done.err
    assert done.err.startswith("soakwatch: c.yaml:")


def test_a_campaign_without_tables_shows_the_usual_figures(report: Reports, tmp_path: Path) -> None:
    """Verdict and the standard figures over its axes; while a run goes on it says so and never passes."""
    asked = YAML.partition("figures:")[0].replace("RELEASE", "v1")
    runs = runs_of()
    runs["64", "25%"][6] = Ran("running", {"load.rx.packet.rate": 1.0})
    campaign_folder(tmp_path / "c", asked, runs)
    done = report("report", "c")
    assert "packets received, mean rate (k packets/s)" in done.out
    assert "verdict" in done.out
    assert "loss, mean (%)" in done.out
    assert done.code == 3
