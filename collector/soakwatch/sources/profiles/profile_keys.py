"""The syntax of a profile: strict shapes, which are the published schema as well (``soakwatch profiles --schema``)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from soakwatch.core.regex import AnyCase, Regex
from soakwatch.core.units import Seconds
from soakwatch.core.validation import Several, Short
from soakwatch.sources.platforms.platform_section import PlatformShape

_OID = re.compile(r"[0-2](\.(0|[1-9][0-9]{0,9})){1,127}")
_KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def _oid(words: str) -> str:
    if words.startswith("."):
        raise ValueError(f"an OID starts with a number: write {words.lstrip('.')}")
    if _OID.fullmatch(words) is None:
        raise ValueError(f"{words!r} is not an OID: write numbers with dots, such as 1.3.6.1.2.1.1.3.0")
    if any(int(arc) >= 2**32 for arc in words.split(".")):
        raise ValueError(f"{words!r} is not an OID: a number in it is larger than 4294967295")
    return words


def _kind(words: str) -> str:
    if _KIND.fullmatch(words) is None:
        raise ValueError(f"{words!r} is not a kind of event: write small words with dots, such as process.crash")
    return words


def _word(words: str) -> str:
    if _WORD.fullmatch(words) is None:
        raise ValueError(f"{words!r} is not a name: small letters, digits and _ only, and no digit first")
    return words


Oid = Annotated[str, AfterValidator(_oid)]
Oids = Annotated[Several[Oid], Field(min_length=1, max_length=500)]
Kind = Annotated[str, AfterValidator(_kind)]
Word = Annotated[str, AfterValidator(_word)]
Reading = int | float | str


class ProfileModel(BaseModel):
    """What all shapes have in common: no key that is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=False)


class ClauseShape(ProfileModel):
    """One way to recognise a device; every key that is given must hold."""

    object_id: Annotated[Oids | None, Field(default=None, description="sysObjectID equals one of these, or lies under")]
    description: Annotated[AnyCase | None, Field(default=None, description="regex, found in sysDescr in any case")]
    not_description: Annotated[AnyCase | None, Field(default=None, description="regex, not found in sysDescr")]
    present: Annotated[Oid | None, Field(default=None, description="a GET of this OID answers")]
    text: Annotated[AnyCase | None, Field(default=None, description="regex, found in what 'present' answers")]


class FactShape(ProfileModel):
    """A text about the device, read at connect and after a reboot."""

    oid: Annotated[Oids | None, Field(default=None, description="whole OIDs; the first that answers")]
    column: Annotated[Oids | None, Field(default=None, description="columns; the first that has rows")]
    first: Annotated[
        bool, Field(default=False, description="the first row of a column that is not empty (the default)")
    ]
    joined: Annotated[bool, Field(default=False, description="all rows of a column, joined")]
    match: Annotated[Regex | None, Field(default=None, description="regex; group 1 is the fact")]
    values: Annotated[dict[str, str], Field(default_factory=dict, description="what a number or text means")]
    form: Annotated[Literal["hex", "ip", "text"] | None, Field(default=None, alias="as")]


class TickerShape(ProfileModel):
    """A clock of the device."""

    oid: Oid
    unit: Annotated[Literal["cs", "ms", "s"], Field(default="cs", description="one tick")]
    bits: Annotated[Literal[32, 64], Field(default=32, description="where it wraps")]


def _tickers(value: object) -> object:
    given = [value] if isinstance(value, str | dict) else value
    return [{"oid": item} if isinstance(item, str) else item for item in given] if isinstance(given, list) else given


Tickers = Annotated[list[TickerShape], BeforeValidator(_tickers, json_schema_input_type=str | list[str | TickerShape])]


class ClocksShape(ProfileModel):
    """Clocks, best first; null removes those of the parent."""

    host: Annotated[Tickers | None, Field(default=None, description="time since the host started")]
    agent: Annotated[Tickers | None, Field(default=None, description="time since the agent started (sysUpTime)")]
    boots: Annotated[Oids | None, Field(default=None, description="snmpEngineBoots")]
    engine: Annotated[Tickers | None, Field(default=None, description="snmpEngineTime")]

    def behind(self, nearer: ClocksShape) -> ClocksShape:
        """These clocks where a nearer file does not give its own."""
        return self.model_copy(update={key: getattr(nearer, key) for key in nearer.model_fields_set})


class ColumnShape(ProfileModel):
    """A value of each row: an OID, a list of OIDs (the first that the device has), or this with options."""

    oid: Oids
    bits: Annotated[Literal[32, 64] | None, Field(default=None, description="width of a counter")]
    invalid: Annotated[list[Reading], Field(default_factory=list, description="values that mean: not available")]
    form: Annotated[Literal["hex", "ip", "text"] | None, Field(default=None, alias="as")]
    per: Annotated[
        Literal["device", "row"],
        Field(
            default="device",
            description="what chooses among several OIDs; row: a 0 is not believed beside a later OID that counts",
        ),
    ]


OneColumn = Annotated[ColumnShape, Short("oid")]


class JoinShape(ColumnShape):
    """A column of another table."""

    index: Annotated[str, Field(description="its index, made of this row: '{phys}', '{index.0}'")]


Conditions = Annotated[dict[str, Regex], Field(default_factory=dict)]


class LineShape(ProfileModel):
    """How a metric of the catalogue comes from a row."""

    metric: str
    value: Annotated[str | int | float, Field(description="a column, or arithmetic over columns")]
    scale: Annotated[float | None, Field(default=None, description="factor to the catalogue's unit")]
    labels: Annotated[dict[str, str | int], Field(default_factory=dict)]
    over: Annotated[Literal["mean", "sum", "max", "min"] | None, Field(default=None, description="fold all rows")]
    of: Annotated[
        Literal["level", "change"], Field(default="level", description="change: increments since the poll before")
    ]
    values: Annotated[dict[str, float] | None, Field(default=None, description="what each value means; default: rest")]
    match: Annotated[Regex | None, Field(default=None, description="regex; group 1 is the number")]
    where: Annotated[Conditions, Field(default_factory=dict, description="rows of the group that have it")]
    optional: Annotated[bool, Field(default=False, description="not every such device has it")]
    lost: Annotated[
        float | None,
        Field(default=None, description="what it is when an invalid reading follows a valid one: -40 dBm is no light"),
    ]


class GroupShape(ProfileModel):
    """A table, or a few scalars, and the metrics that come from it."""

    columns: Annotated[dict[Word, OneColumn], Field(default_factory=dict)]
    scalars: Annotated[dict[Word, OneColumn], Field(default_factory=dict)]
    joins: Annotated[dict[Word, JoinShape], Field(default_factory=dict)]
    where: Annotated[Conditions, Field(default_factory=dict, description="rows whose text matches; 'number': is one")]
    where_not: Annotated[Conditions, Field(default_factory=dict, description="rows to leave out")]
    unless: Annotated[Several[str], Field(default_factory=list, description="only if none of these groups has a row")]
    watch: Annotated[Literal["interface", "process"] | None, Field(default=None)]
    every: Annotated[Seconds | None, Field(default=None, gt=0, description="read at most this often")]
    refresh: Annotated[Seconds | None, Field(default=None, gt=0, description="how often the device renews it")]
    changed: Annotated[Oid | None, Field(default=None, description="a scalar that changes when rows come and go")]
    optional: Annotated[bool, Field(default=False, description="not every such device has it")]
    returning: Annotated[bool, Field(default=False, description="rows that go are asked on: they may come back")]
    metrics: Annotated[list[LineShape], Field(min_length=1, max_length=200)]


class SnmpShape(ProfileModel):
    """What is asked by SNMP."""

    facts: Annotated[dict[Word, FactShape | None], Field(default_factory=dict)]
    clocks: Annotated[ClocksShape | None, Field(default=None)]
    groups: Annotated[dict[str, GroupShape | None], Field(default_factory=dict)]


class LogShape(ProfileModel):
    """A line of syslog or console that means an event."""

    kind: Kind
    match: Regex
    severity: Annotated[str | None, Field(default=None)]


class TrapShape(ProfileModel):
    """An event by its snmpTrapOID."""

    kind: Kind
    detail: Annotated[dict[str, Oid], Field(default_factory=dict)]


class GnmiWhenShape(ProfileModel):
    """A leaf beside that of a path that decides whether the path is sampled."""

    leaf: Annotated[str, Field(description="such as session-state, from where the path's own leaf stands")]
    is_: Annotated[list[str], Field(default_factory=list, alias="is", description="sampled for these words alone")]
    is_not: Annotated[list[str], Field(default_factory=list, description="not sampled for these words")]


class GnmiPathShape(ProfileModel):
    """A path to subscribe to."""

    path: str
    metric: str
    scale: Annotated[float | None, Field(default=None)]
    labels: Annotated[dict[str, str | int], Field(default_factory=dict)]
    mode: Annotated[Literal["sample", "on_change"], Field(default="sample")]
    values: Annotated[dict[str, float], Field(default_factory=dict)]
    when: Annotated[GnmiWhenShape | None, Field(default=None)]
    ago: Annotated[bool, Field(default=False, description="the value is a time; how long ago it was is sampled")]


class GnmiShape(ProfileModel):
    """What is asked by gNMI."""

    paths: list[GnmiPathShape]


class HeadShape(ProfileModel):
    """What is needed to choose a profile."""

    title: Annotated[str | None, Field(default=None, description="what it is for, in a few words")]
    extends: Annotated[Several[str], Field(default_factory=list, description="parents, left to right")]
    select: Annotated[list[ClauseShape], Field(default_factory=list, description="clauses; any may hold")]
    rank: Annotated[int, Field(default=0, ge=-100, le=100, description="higher wins among matches")]


class ProfileShape(HeadShape):
    """A profile, or a part that profiles extend."""

    snmp: Annotated[SnmpShape, Field(default_factory=SnmpShape)]
    logs: Annotated[list[LogShape] | None, Field(default_factory=list)]
    traps: Annotated[dict[Oid, TrapShape | None] | None, Field(default_factory=dict)]
    gnmi: Annotated[GnmiShape | None, Field(default=None)]
    cli: Annotated[PlatformShape | None, Field(default=None, description="its command line over SSH")]


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, object]:
    """The schema (draft 2020-12) for editors; names within a group, labels and metrics are checked on loading only."""
    built = ProfileShape.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **built, "title": "Soakwatch profile", "description": "What a kind of device is asked."}
