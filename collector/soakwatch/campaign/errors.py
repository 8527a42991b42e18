"""What is wrong with a campaign that is no matter of its file."""

from __future__ import annotations

from soakwatch.core.errors import SoakwatchError


class CampaignError(SoakwatchError):
    """A campaign, or its folder, cannot be used; ``str()`` is one sentence with the remedy."""
