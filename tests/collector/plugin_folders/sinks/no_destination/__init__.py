"""A sink that lacks its function."""

from soakwatch.plan.sink_plan import SinkConfig


class Config(SinkConfig):
    """No keys."""
