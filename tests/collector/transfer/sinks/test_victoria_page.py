"""deploy/databases.md: its plans parse, and the programs know the options that it names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.needs import needs

from soakwatch.plan import plan_from_text
from soakwatch.transfer.sinks.registry import destination

PAGE = (Path(__file__).parents[4] / "deploy" / "databases.md").read_text(encoding="utf-8")


def test_the_plans_of_the_page_parse() -> None:
    plans = [plan for plan in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if plan.startswith("sinks:")]
    assert len(plans) == 2
    for plan in plans:
        (sink,) = plan_from_text(f"duration: 1m\ntargets: {{dut: {{sources: [local]}}}}\n{plan}", "page").sinks
        assert destination(sink).where.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("program", ["victoria-metrics", "vmauth", "vmbackup"])
def test_the_programs_know_the_options_that_the_page_names(program: str) -> None:
    needs("victoria-metrics")
    pages = {"vmauth": r"vmauth -auth\.config.*", "vmbackup": r"`vmbackup .*?`"}
    output = re.findall(pages.get(program, r'ARGS=".*"'), PAGE, re.DOTALL if program == "vmbackup" else 0)
    named = {option for text in output for option in re.findall(r"(?<![\w/-])-([a-zA-Z][\w.]*)", text)}
    assert named
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    known = set(re.findall(r"^  -([\w.]+)", shown.stdout + shown.stderr, re.MULTILINE))
    assert named <= known


def test_the_load_of_the_page_is_what_it_says() -> None:
    assert f"{1000 * 200 * 72 * 360:,} samples, {1000 * 200 // 10:,} a second" in PAGE
