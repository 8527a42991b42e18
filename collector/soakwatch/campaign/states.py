"""States of campaigns for who asks often: a campaign's file is loaded once, its ledger each time."""

from __future__ import annotations

import threading
from pathlib import Path

from soakwatch.campaign.campaign_file import CAMPAIGN_COPY, load_outline
from soakwatch.campaign.campaign_keys import Outline
from soakwatch.campaign.campaign_model import CampaignState
from soakwatch.campaign.campaign_state import outline_state
from soakwatch.campaign.ledger import read_ledger

_MOST = 16


class CampaignStates:
    """The states of campaigns as they stand. Used from any thread.

    The copy of a campaign's file never changes while it runs.
    """

    def __init__(self) -> None:
        self._campaigns: dict[Path, tuple[tuple[int, int], Outline]] = {}
        self._lock = threading.Lock()

    def read(self, folder: Path) -> CampaignState:
        """The state of the campaign in a folder. Raises CampaignError and PlanError as ``read_state``."""
        entries = read_ledger(folder)
        file = folder / CAMPAIGN_COPY
        status = file.stat() if file.is_file() else None
        stamp = (0, 0) if status is None else (status.st_mtime_ns, status.st_size)
        with self._lock:
            known = self._campaigns.get(folder)
        campaign = known[1] if known is not None and known[0] == stamp else load_outline(file)
        with self._lock:
            self._campaigns.pop(folder, None)
            self._campaigns[folder] = stamp, campaign
            while len(self._campaigns) > _MOST:
                del self._campaigns[next(iter(self._campaigns))]
        return outline_state(campaign, folder, entries)
