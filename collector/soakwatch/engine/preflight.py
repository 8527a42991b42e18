"""Polls every source once when a run is planned for later, while its user can still fix what is wrong.

Nothing of the run is touched (``SourceContext.trial``), and loads are left out.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from soakwatch.core.clock import SteadyClock
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.text import prefixed
from soakwatch.engine.first_polls import OPENS_S, FirstPolls
from soakwatch.plan import Plan, SourcePlan, TargetPlan
from soakwatch.plan.source_plan import labelled
from soakwatch.sources.abc import SourceContext, SourceError, SourceUnreadyError, timing
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.roles import GENERATOR

MIN_AHEAD_S = 5.0
"""If the start is nearer than this, nothing is polled in advance: the run's first polls come as soon."""

_MAX_S = 60.0
_SPARE_S = 2.0  # between these polls and the start


def preflight(plan: Plan, now_ns: int, registry: Registry = INSTALLED) -> tuple[str, ...]:
    """Sentences about sources that cannot be polled now; () if the run begins at once.

    Raises PlanRefusedError with every problem of the plan itself, which waiting does not fix.
    """
    ahead_s = 0.0 if plan.start is None else plan.start.seconds_until(now_ns * 1e-9)
    if ahead_s < MIN_AHEAD_S:
        return ()
    with tempfile.TemporaryDirectory(prefix="soakwatch-trial-") as folder:
        return asyncio.run(_poll_all(plan, Path(folder), min(_MAX_S, ahead_s - _SPARE_S), registry))


async def _poll_all(plan: Plan, folder: Path, max_s: float, registry: Registry) -> tuple[str, ...]:
    first_polls, troubles = FirstPolls(), []
    async with asyncio.TaskGroup() as group:
        for target in plan.targets:
            for label, planned in labelled(target.sources):
                if planned.poller in registry.loads.names():
                    continue
                on_end = first_polls.expect(target.name, label, planned)
                task = group.create_task(_poll_source(target, planned, folder, max_s, registry))
                troubles.append((target.name, label, planned, on_end, task))
    sentences = []
    for name, label, planned, on_end, task in troubles:
        failure = task.result()
        on_end(failure if isinstance(failure, PlanError) else None)
        if isinstance(failure, str):
            where = f"{planned.location}: " if planned.location else ""
            sentences.append(f"{where}{prefixed(name, label, failure)}")
    first_polls.check()
    return tuple(sentences)


async def _poll_source(
    target: TargetPlan, planned: SourcePlan, folder: Path, max_s: float, registry: Registry
) -> PlanError | str | None:
    """A problem of the plan, or why the source did not answer; None if it did, or is not ready yet."""
    clock, config = SteadyClock(), planned.config
    opens_s = OPENS_S if target.role == GENERATOR and config.timeout is None else 0.0
    limit_s = min(max(timing(0, config.interval, config.timeout).timeout_s, opens_s), max_s)
    site = SourceContext(
        target.name, target.role, target.processes, target.interfaces, folder, clock.now_ns, config.interval, trial=True
    )
    try:
        async with AsyncExitStack() as stack, asyncio.timeout(limit_s):
            poller = await poller_module(planned.poller, registry).start(config, site, stack)
            await poller.poll(clock.now_ns())
    except PlanError as error:
        return error
    except SourceUnreadyError:
        return None
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except (SourceError, SoakwatchError) as failure:
        return str(failure)
    except Exception as defect:  # noqa: BLE001 - one broken source must not hide the others
        # Its type only: an unforeseen exception may quote a secret.
        return f"the {planned.poller} poller raised {type(defect).__name__}"
    return None
