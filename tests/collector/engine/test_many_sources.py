"""A plan of many sources: what is warned of at its start, and when each of them is due."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch.engine.start_warnings import start_warnings
from soakwatch.plan import plan_from_text
from soakwatch.record import Record, RecordView
from soakwatch_model.sample import NOTHING, Poll, PollOutcome

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
PLAN = """\
name: many
duration: 8s
targets:
  sw[01-60]: {role: dut, sources: [{tcp: {host: 127.0.0.1, port: PORT, interval: 1s}}]}
"""


def test_each_source_that_does_not_answer_is_warned_of(tmp_path: Path) -> None:
    """By its first poll, also where others were polled more often since."""
    plan = plan_from_text(PLAN.replace("PORT", "9"), "plan.yaml")
    with Record.create(tmp_path) as record:
        for target in plan.targets:
            source = record.source(target.name, "tcp", f"{target.name}/tcp", SECOND, required=True).id
            for second in range(3 if target.name < "sw30" else 1):
                at = T0 + second * SECOND
                record.put([Poll(source, at, at, 1, PollOutcome.FAILED, f"refused, try {second}", NOTHING)])
    warnings = start_warnings(plan, tmp_path)
    assert len(warnings) == 60
    assert all(warning.endswith("refused, try 0") for warning in warnings)


@pytest.mark.slow
def test_they_take_turns_within_their_interval(tmp_path: Path) -> None:
    """60 sources of a second: half of them are due on the second, half of them between, and each at every second."""

    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        (tmp_path / "plan.yaml").write_text(PLAN.replace("PORT", str(server.sockets[0].getsockname()[1])))
        await asyncio.to_thread(command_in(tmp_path), "run", "plan.yaml", "--no-web", "--into", "run")
        server.close()

    asyncio.run(main())
    with RecordView.open(tmp_path / "run") as view:
        due = {
            source.id: view.poll_outcomes(source.id).due_ns.tolist()
            for source in view.sources()
            if source.name == "tcp"
        }
    phases = Counter(times[0] % SECOND for times in due.values())
    assert phases == {0: 25, SECOND // 2: 35}
    assert all({late - early for early, late in pairwise(times)} == {SECOND} for times in due.values())
