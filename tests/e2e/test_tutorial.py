"""The tutorial of docs/ that promises a pass and a fail: each of its commands is run as it stands there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.doc_blocks import missing, run_steps, steps_of

PAGE = Path(__file__).parents[2] / "docs" / "first-service.md"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_service_in_ten_minutes(tmp_path: Path) -> None:
    """The first run passes, the second fails for its leak, and every line that the page shows is printed."""
    steps = steps_of(PAGE.read_text(encoding="utf-8"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = run_steps(steps, tmp_path, {"PATH": path}, 1500)
    assert len(printed) == len(steps) == 5, printed
    for step, output in zip(steps, printed, strict=True):
        assert list(missing(step, output)) == [], output
    assert (tmp_path / "shop-soak" / "shop.html").stat().st_size > 100_000
