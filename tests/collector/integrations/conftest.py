"""The recorded, served and commanded runs of the web tests, for tests that attach to them."""

from tests.collector.web.conftest import client, events_of, recorded, run, served, soakwatch, started, until

__all__ = ["client", "events_of", "recorded", "run", "served", "soakwatch", "started", "until"]
