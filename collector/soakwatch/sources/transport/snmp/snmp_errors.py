"""What can go wrong between the collector and an SNMP agent: kinds of failure, each a sentence with its remedy."""

from __future__ import annotations

from enum import Enum

from soakwatch.sources.abc import SourceError


class FailureKind(Enum):
    """What went wrong; the text is the sentence after the address."""

    NO_ANSWER = "no answer within {seconds:.3g} s: it is down, filtered, or does not accept these credentials"
    SILENT = (
        "nothing answers, neither to this request nor to an SNMPv3 discovery: the device is down, traffic is filtered, "
        "or SNMP is off"
    )
    REFUSED = "the port is closed: no SNMP agent listens there; check the port and whether the agent runs"
    ADDRESS = "the address cannot be used ({detail}): check host and network"
    COMMUNITY = (
        "an agent is there (it answers SNMPv3 discoveries) but not to this community: check the community and the "
        "agent's list of allowed sources"
    )
    USER = "the agent does not know this user: check the user and that it exists on this device"
    AUTH_KEY = "the authentication key or its protocol is wrong for this user: check auth and auth_protocol"
    PRIV_KEY = "the privacy key or its protocol is wrong for this user: check priv and priv_protocol"
    LEVEL = "the agent does not allow this security level to this user: give auth and priv as the device asks for them"
    ENGINE_ID = "the agent does not know the engine ID in the request: its engine was replaced"
    TIME_WINDOW = "the request was not in the agent's time window: its engine restarted or its clock jumps"
    STATUS = "the agent answers with the error {detail}"
    DENIED = (
        "the agent denies access ({detail}): check what the community or user may read, and with which security level"
    )
    NOTHING = (
        "the agent answers, but returns none of the requested objects: check what the community or user may read, "
        "and profile"
    )
    MALFORMED = "the answer is not readable SNMP ({detail}): check that the port is that of an SNMP agent"
    TOO_LARGE = "a request or an answer of {detail} bytes is more than the SNMP library can read: write engine: pysnmp"
    LOOP = "a table of the agent never ends: {detail} came twice in one walk; the agent has a defect"
    TOO_MANY = "a table of the agent has more than {detail} rows: limit the groups that are read"
    LATE = "the agent answers, but only after {detail}: raise timeout and interval above that"
    TOO_SLOW = (
        "the device answers, but reading everything takes longer than a poll: raise interval and timeout, "
        "or read fewer groups"
    )
    LOST = (
        "request lost: about {detail} of the requests were not answered, while the others were: packets are lost on "
        "the path to the device, or its agent drops requests"
    )
    FLAKY = "requests were lost, but the agent answers now: packets are lost in the network, or the agent was busy"


STATUSES = (
    "noError",
    "tooBig",
    "noSuchName",
    "badValue",
    "readOnly",
    "genErr",
    "noAccess",
    "wrongType",
    "wrongLength",
    "wrongEncoding",
    "wrongValue",
    "noCreation",
    "inconsistentValue",
    "resourceUnavailable",
    "commitFailed",
    "undoFailed",
    "authorizationError",
    "notWritable",
    "inconsistentName",
)
"""Names of error-status (RFC 3416 section 3)."""
TOO_BIG, NO_SUCH_NAME, NO_ACCESS, AUTHORIZATION = 1, 2, 6, 16

_USM = "1.3.6.1.6.3.15.1.1."
REPORTS = {
    _USM + "1.0": FailureKind.LEVEL,  # usmStatsUnsupportedSecLevels
    _USM + "2.0": FailureKind.TIME_WINDOW,
    _USM + "3.0": FailureKind.USER,
    _USM + "4.0": FailureKind.ENGINE_ID,
    _USM + "5.0": FailureKind.AUTH_KEY,  # usmStatsWrongDigests
    _USM + "6.0": FailureKind.PRIV_KEY,  # usmStatsDecryptionErrors
}
"""What a Report of RFC 3414 means."""


class SnmpPollError(SourceError):
    """One failure; ``status`` and ``index`` are those of the PDU for STATUS and DENIED."""

    def __init__(
        self, kind: FailureKind, where: str, *, detail: str = "", seconds: float = 0.0, status: int = 0, index: int = 0
    ) -> None:
        super().__init__(f"{where}: {kind.value.format(detail=detail, seconds=seconds)}")
        self.kind, self.where, self.status, self.index = kind, where, status, index


def refused(where: str, status: int, index: int) -> SnmpPollError:
    """The failure of an error-status."""
    kind = FailureKind.DENIED if status in {NO_ACCESS, AUTHORIZATION} else FailureKind.STATUS
    return SnmpPollError(kind, where, detail=status_name(status), status=status, index=index)


def status_name(status: int) -> str:
    """The word of RFC 3416 for an error-status.

    >>> status_name(5), status_name(77)
    ('genErr', 'error-status 77')
    """
    return STATUSES[status] if 0 <= status < len(STATUSES) else f"error-status {status}"
