"""The agent's answers: one dispatcher for questions over SSH, socket and HTTPS."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from typing import Callable, Dict, Iterator, List, Mapping, Optional, cast

from soakwatch_agent.agentclock import AgentClock
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_agent.framing import (
    DONE,
    ERROR,
    HELLO,
    PROTOCOL,
    FrameError,
    Object,
    line_of,
    number,
    poll_line,
    question_of,
    whole,
    word,
)
from soakwatch_agent.recorder import Recorder
from soakwatch_agent.sampler import Sampler
from soakwatch_agent.settings import delete_settings, save_settings, settings_of
from soakwatch_agent.spool import Spool
from soakwatch_agent.version import VERSION
from soakwatch_model.tree import Tree

_MAX_POLLS, _MAX_BYTES, _MAX_WAIT_S = 500, 2 * 2**20, 20.0
_BUSY_S = 60.0  # a run counts as served for this long after its last question

Reply = Iterator[bytes]


class FingerprintReader:
    """Reads the machine's fingerprint in a thread; each one is handed over once, then read anew."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None
        self._read: Optional[Mapping[str, Tree]] = None

    def tree(self, interfaces: Optional[List[str]]) -> Optional[Object]:
        """The fingerprint if its reading is complete; else None, and a reading is started or goes on."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, args=(interfaces,), name="fingerprint", daemon=True)
                self._thread.start()
            elif not self._thread.is_alive():
                read, self._thread, self._read = self._read, None, None
                if read is None:
                    return {"notes": ["the agent failed to read what the machine is"]}
                return cast("Object", dict(read))
            return None

    def _work(self, interfaces: Optional[List[str]]) -> None:
        self._read = fingerprint(self._root, interfaces)


class Agent:
    """One agent: its clock, spool, sampler and recorder, and its answers to questions."""

    def __init__(
        self,
        folder: str,
        clock: AgentClock,
        spool: Spool,
        sampler: Sampler,
        recorder: Optional[Recorder],
        mode: str,
        stop: Callable[[], None],
        root: str = "/",
    ) -> None:
        self._folder, self._clock, self._spool, self._sampler = folder, clock, spool, sampler
        self._recorder, self._mode, self._stop = recorder, mode, stop
        self._fingerprints = FingerprintReader(root)
        self._served_ns = 0
        self._open_lock = threading.Lock()
        self._started = time.monotonic()
        self._replies: Dict[str, Callable[[int, Object], Reply]] = {
            "fingerprint": self._fingerprint,
            "ping": self._ping,
            "open": self._open,
            "looks": self._polls,
            "window": self._window,
            "status": self._status,
            "rest": self._rest,
            "stop": self._stop_agent,
        }

    def hello(self) -> bytes:
        """The first line of every connection."""
        return line_of(
            HELLO,
            {
                "v": PROTOCOL,
                "version": VERSION,
                "agent": self._spool.agent_id,
                "boot": self._clock.boot,
                "epoch": self._clock.epoch,
                "python": platform.python_version(),
                "arch": platform.machine(),
                "system": f"{platform.system()} {platform.release()}",
                "host": platform.node(),
                "way": self._mode,
                "recorder": self._recorder is not None,
                "fingerprint": True,
            },
        )

    def reply(self, question: bytes) -> Reply:
        """The lines of an answer, the last one ``done`` or ``error``. A bad question is an ``error``, never raises."""
        question_id = 0
        try:
            question_id, ask, body = question_of(question)
            answer = self._replies.get(ask)
            yield from (answer or self._unknown)(question_id, body)
        except FrameError as error:
            yield line_of(ERROR, {"id": question_id, "text": str(error)})

    def _unknown(self, _: int, __: Object) -> Reply:
        raise FrameError("unknown question: the collector is newer than this agent, update the agent")

    def _ping(self, question_id: int, _: Object) -> Reply:
        yield line_of(
            DONE,
            {
                "id": question_id,
                "clock_ns": self._clock.now_ns(),
                "epoch": self._clock.epoch,
                "wall_ns": time.time_ns(),
            },
        )

    def _open(self, question_id: int, body: Object) -> Reply:
        run = word(body, "run")
        if not 0 < len(run) <= 200:
            raise FrameError("the name of a run must have 1 to 200 characters")
        settings = settings_of(body)
        with self._open_lock:
            if run != self._spool.run and self._spool.run and self._busy() and body.get("take") is not True:
                raise FrameError(
                    "the agent serves another run, which polled it within the last minute: end that run, "
                    "wait a minute, "
                    "or install a second agent in another folder (dir)"
                )
            fresh = run != self._spool.run or self._sampler.settings is None
            self._spool.begin(run)
            if settings != self._sampler.settings:
                try:
                    save_settings(self._folder, settings)
                except OSError as error:
                    raise FrameError(f"the agent's folder cannot be written: {error.strerror}") from None
                self._sampler.set(settings, at_once=fresh)
            self._served_ns = time.monotonic_ns()
        yield line_of(DONE, {"id": question_id, **self._spool_state()})

    def _busy(self) -> bool:
        return bool(self._served_ns) and time.monotonic_ns() - self._served_ns < _BUSY_S * 1e9

    def _polls(self, question_id: int, body: Object) -> Reply:
        if word(body, "run") != self._spool.run:
            raise FrameError("the agent now serves another run: this run must open it again")
        self._served_ns = time.monotonic_ns()
        self._spool.ack(whole(body, "ack"))
        fresh_ns, wait_s = whole(body, "fresh_ns"), number(body, "wait_s", 0.0)
        deadline = time.monotonic() + min(max(wait_s, 0.0), _MAX_WAIT_S)
        after, newest = whole(body, "after"), None
        while True:
            state = self._spool.state()
            left = deadline - time.monotonic()
            if self._newest_due_ns(state.last) >= fresh_ns or left <= 0:
                break
            self._spool.wait_for(state.last + 1, left)
        lines = self._spool.read(after, min(max(whole(body, "most"), 1), _MAX_POLLS), _MAX_BYTES)
        newest = self._spool.newest()
        ahead = None
        if newest is not None and newest.seq > after and (not lines or lines[-1].seq < newest.seq):
            lines.append(newest)  # a collector that catches up also gets the present
            ahead = newest.seq
        for line in lines:
            yield poll_line(line.seq, line.epoch, line.wire)
        yield line_of(DONE, {"id": question_id, "ahead": ahead, **self._spool_state()})

    def _newest_due_ns(self, seq: int) -> int:
        """Due time of the newest poll, ns; 0 if this process has not polled yet."""
        newest = self._spool.newest()
        settings = self._sampler.settings
        if newest is None or newest.seq < seq or settings is None:
            return 0
        return due_of(newest.wire)

    def _spool_state(self) -> Object:
        state = self._spool.state()
        return {
            "first": state.first,
            "last": state.last,
            "acked": state.acked,
            "lost": state.lost,
            "ranges": [[first, last] for first, last in state.ranges],
            "bytes": state.size,
            "trouble": state.trouble,
            "skipped": self._sampler.skipped,
            "cpu_s": time.process_time(),
        }

    def _window(self, question_id: int, body: Object) -> Reply:
        if self._recorder is None:
            raise FrameError("this agent runs without a flight recorder")
        yield line_of(DONE, {"id": question_id, **self._recorder.window(whole(body, "from_ns"), whole(body, "to_ns"))})

    def _fingerprint(self, question_id: int, body: Object) -> Reply:
        """The fingerprint, read in the background so that no poll waits; ``tree`` is null until it is complete."""
        globs = body.get("interfaces")
        interfaces = [str(each) for each in globs] if isinstance(globs, list) else None
        yield line_of(DONE, {"id": question_id, "tree": self._fingerprints.tree(interfaces)})

    def _rest(self, question_id: int, body: Object) -> Reply:
        """The run ended: stop polling until the next one."""
        if word(body, "run") == self._spool.run:
            self._sampler.set(None)
            self._served_ns = 0
            with contextlib.suppress(OSError):  # at worst it polls after its next start
                delete_settings(self._folder)
        yield line_of(DONE, {"id": question_id})

    def _status(self, question_id: int, _: Object) -> Reply:
        settings = self._sampler.settings
        yield line_of(
            DONE,
            {
                "id": question_id,
                "pid": os.getpid(),
                "up_s": round(time.monotonic() - self._started, 3),
                "run": self._spool.run,
                "served": self._busy(),
                "interval_s": None if settings is None else settings.interval_ns / 1e9,
                "recorder_every_s": None if self._recorder is None else self._recorder.every_s,
                "recorder_cpu_s": None if self._recorder is None else round(self._recorder.cost, 3),
                **self._spool_state(),
            },
        )

    def _stop_agent(self, question_id: int, _: Object) -> Reply:
        yield line_of(DONE, {"id": question_id})
        self._stop()


def due_of(wire: bytes) -> int:
    """The due time in an encoded poll, found without decoding it all; 0 if it has none.

    >>> due_of(b'{"v":1,"source":0,"due":17,"start":18}')
    17
    """
    _, key, rest = wire[:80].partition(b'"due":')
    digits: List[int] = []
    for byte in rest if key else b"":
        if not 48 <= byte <= 57:
            break
        digits.append(byte - 48)
    return int("".join(map(str, digits))) if digits else 0
