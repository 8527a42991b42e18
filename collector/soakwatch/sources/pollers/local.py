"""This machine, or one under a folder: system, processes, core dumps and kernel log, with the agent's probes."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from soakwatch.core.daemon_thread import in_daemon_thread
from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import SourceConfig, SourceContext, SourceError
from soakwatch_agent.context import HostContext, watch
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_agent.host import Host, probe_names
from soakwatch_model.sample import Answer, Sample, object_text
from soakwatch_model.tree import Tree

_SELF = object_text(source="local")


class Config(SourceConfig):
    """Keys of the source ``local``."""

    probes: Annotated[
        list[str] | None,
        Field(
            default=None,
            description="only these probes (soakwatch-agent --list names them), or with a minus all but them "
            "(`-ledger`); default: all",
        ),
    ]
    core_folders: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="folders with core files, in addition to those of the kernel's core pattern",
        ),
    ]
    root: Annotated[
        str,
        Field(default="/", description="folder that holds the machine's /proc, /sys and so on"),
    ]

    def require_known(self) -> None:
        """Raises PlanError for an unknown probe."""
        for name in self.probes or ():
            if (bare := name.removeprefix("-")) not in probe_names():
                raise PlanError(f"there is no probe {bare!r}{hint(bare, probe_names())}")


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Answer]
    loop: asyncio.AbstractEventLoop
    result: asyncio.Future[Answer]


class _Lane:
    """One thread that does one job after the other.

    A daemon, unlike the threads of concurrent.futures: a read that hangs in the kernel must not keep the collector
    from ending.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        self.busy = False

    async def do(self, work: Callable[[], Answer]) -> Answer:
        """Waits for the job; if the waiting is cancelled the job goes on, and ``busy`` stays True."""
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, loop.create_future())
        self.busy = True
        self._jobs.put(job)
        return await job.result

    def end(self) -> None:
        """Ends the thread after the job that it does."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer: Answer | None = None
            error: Exception | None = None
            try:
                answer = job.work()
            except Exception as caught:  # noqa: BLE001 - it belongs to the one who waits
                error = caught
            self.busy = False
            try:
                job.loop.call_soon_threadsafe(_settle, job.result, answer, error)
            except RuntimeError:
                return  # the loop is closed: the result is not awaited any more
            del job, answer, error


def _settle(result: asyncio.Future[Answer], answer: Answer | None, error: Exception | None) -> None:
    if result.done():
        return  # it was cancelled
    if answer is not None:
        result.set_result(answer)
    else:
        result.set_exception(error or RuntimeError("a poll returned neither an answer nor an error"))


class LocalPoller:
    """The probes of a machine, read in a thread of their own: a read that hangs never blocks the event loop.

    On the machine ``itself`` the whole collector is what the polls cost: all of this process.
    """

    def __init__(self, host: Host, context: HostContext, *, itself: bool) -> None:
        self._host, self._context, self._itself = host, context, itself
        self._lane = _Lane("soakwatch-local")

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError while an earlier poll still hangs."""
        if self._lane.busy:
            raise SourceError("reading this machine's own files still hangs: a disk or a driver does not respond")
        answer = await self._lane.do(lambda: self._host.poll(now_ns))
        if not self._itself:
            return answer
        cost = Sample("source.device.cpu.time", _SELF, time.process_time(), now_ns)
        return Answer((*answer.samples, cost), answer.events, answer.faults)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """What the machine is, read in a thread of its own beside the polls."""
        interfaces = None if self._context.interfaces is None else list(self._context.interfaces)
        return await in_daemon_thread(lambda: fingerprint(self._context.root, interfaces), "soakwatch-fingerprint")

    def close(self) -> None:
        """Closes the probes, unless a poll still hangs in them."""
        self._lane.end()
        if not self._lane.busy:
            self._host.close()


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> LocalPoller:
    """Opens the probes. Raises PlanError for an unknown probe, or a wrong root or watch."""
    poller = await asyncio.to_thread(_open, config, site)
    stack.callback(poller.close)
    return poller


def _open(config: Config, site: SourceContext) -> LocalPoller:
    config.require_known()
    if not os.path.isdir(os.path.join(config.root, "proc")):  # noqa: PTH112
        raise PlanError(f"{site.target}: root {config.root} has no folder proc, so it is not the root of a machine")
    try:
        watches = tuple(watch(process.name, process.how, process.what) for process in site.processes)
    except ValueError as error:
        raise PlanError(f"{site.target}: {error}") from None
    context = HostContext(os.path.realpath(config.root), watches, site.interfaces, tuple(config.core_folders))
    every = all(name.startswith("-") for name in config.probes or ())
    return LocalPoller(Host(context, config.probes), context, itself=context.real and every)
