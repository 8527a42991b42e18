"""The campaigns of deploy/examples: each is right as it stands, and its table comes out of its runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.commands import command_in

from soakwatch.testing.ports import free_port

ROOT = Path(__file__).parents[2]
CAMPAIGNS = ROOT / "deploy" / "examples" / "campaigns"
NAMES = ("overload", "releases", "cube", "sizes", "cores", "sheet")
CELLS = {"overload": 12, "releases": 3, "cube": 21, "sizes": 72, "cores": 5, "sheet": 3}
WHOLE_S = 3000.0
"""Seconds that a whole campaign may take on a busy machine; alone it takes a few minutes."""


@pytest.mark.parametrize("name", NAMES)
def test_each_campaign_is_right_as_it_stands(name: str) -> None:
    """`campaign plan` reads the file, its base plan and its tables, and finds the cells."""
    done = command_in(ROOT)("campaign", "plan", CAMPAIGNS / name / "campaign.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    cells = CELLS[name]
    assert done.stdout.startswith(f"{name}: {cells} cells, ")


@pytest.fixture
def benches() -> Iterator[list[str]]:
    """Names of campaigns whose benches are ended with the test."""
    names: list[str] = []
    yield names
    for name in names:
        for bed, _ in enumerate(yaml.safe_load((CAMPAIGNS / name / "campaign.yaml").read_text())["testbeds"]):
            page = str(_page(name) + bed)
            subprocess.run([CAMPAIGNS / "bench", name, "--page", page, "--end"], check=True, timeout=60)


def _page(name: str) -> int:
    """The port of the first bed's exporter."""
    words = yaml.safe_load((CAMPAIGNS / name / "campaign.yaml").read_text())["before"]
    return int(words[words.index("--page") + 1])


@dataclass(frozen=True)
class Table:
    """What `campaign report` says of a finished campaign: its JSON, and its Markdown."""

    data: Mapping[str, Any]
    text: str

    def figure(self, name: str, **values: str) -> float:
        """The median of a figure in one cell."""
        (cell,) = [each for each in self.data["cells"] if values.items() <= each["values"].items()]
        (figure,) = [each for each in cell["figures"] if each["figure"] == name]
        assert figure["median"] is not None, figure
        return float(figure["median"])

    def sentences(self, kind: str) -> list[str]:
        """The findings of a kind, as they are told."""
        return [json.dumps(each, ensure_ascii=False) for each in self.data["findings"] if each["kind"] == kind]


def whole(name: str, folder: Path, file: Path | None = None) -> Table:
    """A campaign from its begin to its table, run from the checkout as its file says."""
    soakwatch = command_in(ROOT)
    done = soakwatch("campaign", "run", file or CAMPAIGNS / name / "campaign.yaml", "--folder", folder, timeout=WHOLE_S)
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    reported = soakwatch(
        "campaign",
        "report",
        folder,
        "--json",
        folder / "table.json",
        "--md",
        folder / "table.md",
        "--html",
        folder / "t.html",
    )
    assert reported.returncode in {0, 1, 3}, reported.stdout + reported.stderr
    return Table(json.loads((folder / "table.json").read_text()), (folder / "table.md").read_text())


def test_a_small_campaign_from_its_file_to_its_table(tmp_path: Path) -> None:
    """Two releases, a run each, on ports of this test: the newer one is 7.65 % slower in the table."""
    generator, page = free_port(), free_port()
    campaign = yaml.safe_load((CAMPAIGNS / "releases" / "campaign.yaml").read_text())
    plan = yaml.safe_load((CAMPAIGNS / "releases" / "plan.yaml").read_text())
    plan["phases"] = [{"baseline": {"for": "2s", "load": "0%"}}, {"stress": {"for": "5s", "load": "100%"}}]
    plan["targets"]["dut"]["sources"][0]["prometheus"]["url"] = f"http://127.0.0.1:{page}/metrics"
    plan["targets"]["tg"]["sources"][0]["pktgen"]["port"] = generator
    campaign |= {
        "plan": plan,
        "matrix": {"release": ["v2.2", "v2.3"]},
        "repeat": 1,
        "testbeds": {f"port-{page}-a": {}},
        "retry": {},
    }
    campaign["compare"] = campaign["compare"][:1]
    words = campaign["before"]
    words[words.index("4620")], words[words.index("9120")] = str(generator), str(page)
    file = tmp_path / "campaign.yaml"
    file.write_text(yaml.safe_dump(campaign), encoding="utf-8")
    try:
        table = whole("releases", tmp_path / "folder", file)
    finally:
        subprocess.run([CAMPAIGNS / "bench", "releases", "--page", str(page), "--end"], check=True, timeout=60)
    ratio = table.figure("throughput", release="v2.3") / table.figure("throughput", release="v2.2")
    assert ratio == pytest.approx(1 - 0.0765, abs=0.015)
    assert "Releases" in table.text
    (comparison,) = table.data["findings"]
    assert comparison["kind"] == "comparison"
    assert comparison["outcome"] == "inconclusive"  # one run each
