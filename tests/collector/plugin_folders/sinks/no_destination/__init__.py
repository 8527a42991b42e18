"""A sink that lacks its function."""

from soakwatch.plan.sink import SinkConfig


class Config(SinkConfig):
    """No keys."""
