"""Profiles: what a kind of device is asked, and how its answers become metrics of the catalogue, as data.

``load_profiles()`` reads them, ``match`` chooses one, ``Reader`` asks a device by it; the transport is an ``Asker``.
"""

from soakwatch.profile.asker import Asker
from soakwatch.profile.discovery import discover
from soakwatch.profile.facts import read_facts
from soakwatch.profile.loading import FALLBACK, Profiles, load_profiles
from soakwatch.profile.matching import Match, match
from soakwatch.profile.model import Clocks, Profile, Ticker
from soakwatch.profile.reader import Reader, State, read
from soakwatch.profile.survey import Reading, Survey, Traced
from soakwatch.profile.value import Value

__all__ = [
    "FALLBACK",
    "Asker",
    "Clocks",
    "Match",
    "Profile",
    "Profiles",
    "Reader",
    "Reading",
    "State",
    "Survey",
    "Ticker",
    "Traced",
    "Value",
    "discover",
    "load_profiles",
    "match",
    "read",
    "read_facts",
]
