"""Profiles: what a kind of device is asked, and how its answers become metrics of the catalogue, as data.

``load_profiles()`` reads them, ``match`` chooses one, ``ProfileReader`` asks a device by it; the transport is an
``Asker``.
"""

from soakwatch.sources.profiles.device_survey import PollReading, Survey
from soakwatch.sources.profiles.discovery import discover
from soakwatch.sources.profiles.facts import read_facts
from soakwatch.sources.profiles.loading import FALLBACK, Profiles, load_profiles
from soakwatch.sources.profiles.matching import Match, match
from soakwatch.sources.profiles.profile_model import Clocks, Profile, Ticker
from soakwatch.sources.profiles.profile_reader import ProfileReader, ReaderState, read
from soakwatch.sources.profiles.value import Asker, Value

__all__ = [
    "FALLBACK",
    "Asker",
    "Clocks",
    "Match",
    "PollReading",
    "Profile",
    "ProfileReader",
    "Profiles",
    "ReaderState",
    "Survey",
    "Ticker",
    "Value",
    "discover",
    "load_profiles",
    "match",
    "read",
    "read_facts",
]
