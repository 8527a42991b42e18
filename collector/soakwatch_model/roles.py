"""The roles that a target plays in a run."""

from __future__ import annotations

from typing import Final, Literal

DUT: Final = "dut"
GENERATOR: Final = "generator"
MONITOR: Final = "monitor"
"""Soakwatch itself: the role, and the name of the target that stands for it."""
ROLES: Final = (DUT, GENERATOR, MONITOR)
Role = Literal["dut", "generator", "monitor"]
"""A role as a plan writes it."""
