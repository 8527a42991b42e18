"""Real processes that leak by a known line, beside a busy cache, and healthy ones: looked at as a run does it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.bench.diagnose.named_rightly import Made, all_tried, built, leaking

from soakwatch.diagnose.reading import Kind

SECONDS = 24.0


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["glibc", "jemalloc", "go", "python", "java", "node"])
def test_a_leak_is_named_with_its_line_and_a_full_cache_is_not(runtime: str, tmp_path: Path) -> None:
    """By the runtime's own account; the process goes on, and its stops are within what is allowed."""
    if runtime not in built(tmp_path):
        pytest.skip(f"what {runtime} needs is not installed: gdb, gcc, libjemalloc2, go and curl, a JDK, node")
    made = [Made(runtime, "leak", 0), Made(runtime, "cache", 0)]
    leak, cache = asyncio.run(all_tried(made, tmp_path, SECONDS, 2))
    assert (leak.read.kind, cache.read.kind) == (Kind.LEAK, Kind.BOUNDED)
    assert not cache.read.sites
    if runtime not in {"glibc", "jemalloc"}:
        assert leak.site(leaking(leak.made)), leak.read.sites[:3]
    for look in (*leak.looks, *cache.looks):
        assert not look.absent
        assert (look.cost.stopped_s or 0.0) <= 5.0
