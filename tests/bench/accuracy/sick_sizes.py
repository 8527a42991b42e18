"""Faults from small to large, so that a curve of detection comes out: the smallest are not to be seen, the largest are.

Sizes are multiples of the smallest growth that the finding of the healthy night states, or in the fault's own unit.
"""

from __future__ import annotations

from tests.bench.accuracy.sick import cpu_at_the_top, grows, leak
from tests.bench.accuracy.sick_changes import cpu_creep, deaf_port, hotter, link_down, slower_each_hour, surge
from tests.bench.accuracy.sick_traffic import latency, lost, slower, stops
from tests.bench.accuracy.truth import Fault

SIZED: dict[str, tuple[Fault, ...]] = {
    "sizes of leaks": (
        *(leak(times) for times in (0.5, 1, 1.5, 2, 3, 5)),
        *(leak(times, "late") for times in (0.5, 1, 2, 3, 5)),
        *(leak(times, "host") for times in (0.5, 1, 2, 3, 5)),
        *(grows(share) for share in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)),
    ),
    "sizes of losses": (
        *(lost(ratio, "packets") for ratio in (1e-5, 1e-4, 0.001, 0.01, 0.1)),
        *(lost(ratio, "requests") for ratio in (1e-5, 1e-4, 0.001, 0.01, 0.1)),
        *(stops(seconds) for seconds in (2.0, 5.0, 10.0, 30.0, 60.0, 300.0)),
        *(slower(share, "step") for share in (0.02, 0.05, 0.1, 0.2, 0.4)),
        *(slower(share, "decline") for share in (0.02, 0.05, 0.1, 0.2, 0.4)),
    ),
    "sizes of changes": (
        *(latency(times) for times in (1.1, 1.3, 1.6, 2, 3, 5)),
        *(slower_each_hour(share) for share in (0.1, 0.3, 0.5, 1.0, 2.0)),
        *(cpu_creep(points) for points in (0.06, 0.12, 0.24, 0.48)),
        *(cpu_at_the_top(seconds) for seconds in (60.0, 120.0, 180.0, 300.0, 900.0)),
        *(hotter(kelvin) for kelvin in (4.0, 8.0, 15.0, 30.0)),
        *(link_down(hours) for hours in (0.05, 0.25, 2.0)),
        *(deaf_port(hours) for hours in (0.25, 1.0, 3.0, 6.0)),
        *(surge("system.tcp.retransmits", times, 4.0) for times in (5.0, 20.0, 100.0)),
    ),
}
"""By group, as ``FAULTS`` of sick.py."""
