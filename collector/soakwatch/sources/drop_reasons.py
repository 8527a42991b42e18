"""Whether a device dropped a packet on purpose: what a firewall refuses is its work, and no loss."""

from __future__ import annotations

import re

_PURPOSE = re.compile(
    r"(?i:acl|access[-_ ]?list|l2_acl|den(?:y|ied)|\bpolicy|_policy|rpf|spoof|shun|blacklist|blocklist|security-failed"
    r"|not-syn|3whs|rstfin|paws|tcp-(?:seq|invalid|dup|acked|rst|fo)|bad-tcp|natt-keepalive|firewall|filter"
    r"|normal discard|zone_?protection|uturn|nonsyn|non_syn|unauthori[sz]ed|prohibit)"
)


def refused_on_purpose(reason: str) -> bool:
    """Whether a reason of a drop is a rule, a filter or a protocol check doing its work, and no loss.

    >>> refused_on_purpose("acl-drop"), refused_on_purpose("no-route"), refused_on_purpose("MDF_RPF_FAIL_DROP")
    (True, False, True)
    """
    return _PURPOSE.search(reason) is not None
