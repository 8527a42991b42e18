"""Runs work over many rows in a thread so that the event loop goes on: 10,000 interfaces take a second or more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

THREAD_FROM = 5000  # values; fewer take less time than what a loop can be late by anyway

P = ParamSpec("P")
R = TypeVar("R")


async def run_in_thread_if_large(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of ``work``, in a thread if ``size`` is large; its arguments must not be used elsewhere meanwhile."""
    if size <= THREAD_FROM:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
