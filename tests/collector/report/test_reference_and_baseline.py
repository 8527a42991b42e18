"""The section ``reference_and_baseline``: the ceilings of the generators and the frozen baseline, or nothing."""

from __future__ import annotations

import json
import random
from copy import copy
from typing import Protocol

import pytest

from soakwatch.judge.baseline import BaselineSnapshot, Level
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch_model.window import Window

BEGIN = 1_795_200_000 * 10**9
REFERENCE = json.dumps(
    {
        "file": "fw.reference.yaml",
        "sha256": "ab" * 32,
        "used": ["tg"],
        "reference": {
            "made": "2026-11-20T08:00:00Z",
            "record": "20261120T080000Z-fw-calibration",
            "generators": {"tg": {"packets": {"rate": 2_500_000.0, "held_s": 10.0, "loss": 0.0, "cpu": 0.61}}},
        },
    }
)


class WithMetas(ReportSource, Protocol):
    """A record in memory."""

    metas: dict[str, str]


def baseline(run: str = "", number: int = 1) -> str:
    """A frozen baseline of so many series."""
    levels = tuple(
        Level("<dut>", "system.cpu.core.utilization", f"core={n}", "1", 1800, 0.25, 0.01, (0.2, 0.24, 0.26, 0.3), 60.0)
        for n in range(number)
    )
    return BaselineSnapshot(run, Window(BEGIN, BEGIN + 1800 * 10**9), levels, 2).text()


def section_of(plain: tuple[WithMetas, Verdict], **metas: str) -> str | None:
    """The section of a page over a record with these metas; None where there is none."""
    record, verdict = plain
    changed = copy(record)
    changed.metas = {**record.metas, **metas}
    page = render_html(changed, verdict)
    if 'id="reference_and_baseline"' not in page:
        return None
    return page[page.index('<section id="reference_and_baseline">') :].partition("</section>")[0]


def test_it_is_left_out_where_a_run_had_neither(plain: tuple[WithMetas, Verdict]) -> None:
    """Most runs of a device without a generator."""
    assert section_of(plain) is None


def test_it_shows_the_ceilings_and_the_baseline(plain: tuple[WithMetas, Verdict]) -> None:
    """Each alone and both; what is not reported is not known; names are escaped."""
    alone = section_of(plain, reference=REFERENCE)
    assert alone is not None
    assert "2.5 M packets/s" in alone
    assert "20261120T080000Z-fw-calibration" in alone
    assert "not known" in alone  # its queue
    assert "The baseline" not in alone
    own = section_of(plain, baseline=baseline())
    assert own is not None
    assert "&lt;dut&gt;" in own
    assert "Generator capacity" not in own
    assert "and 2 more are in the record" in own
    both = section_of(plain, reference=REFERENCE, baseline=baseline("earlier", 50))
    assert both is not None
    assert "The baseline of an earlier run" in both
    assert "and 12 more are in the record" in both
    assert both.count("core=") == 40


@pytest.mark.slow
def test_a_baseline_that_was_changed_is_reported(plain: tuple[WithMetas, Verdict]) -> None:
    """Its hash no longer fits, whatever was changed; a reference that cannot be read is left out."""
    changed = section_of(plain, baseline=baseline().replace("0.25", "0.35"))
    assert changed is not None
    assert "was changed after it was frozen" in changed
    chance = random.Random(1)
    for _ in range(5):
        cut = REFERENCE[: chance.randrange(len(REFERENCE))]
        assert section_of(plain, reference=cut) is None
