"""A campaign: the keys of its file, of which the JSON Schema is made, and what is read from them.

``axes_and_cells.py`` makes axes and cells of what the file says of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from soakwatch.campaign.campaign_model import Axis, Cell, Testbed
from soakwatch.campaign.tables.spec import TablesKeys
from soakwatch.core.units import seconds, share
from soakwatch.core.validation import Several, Short, shown
from soakwatch.core.yaml import Plain, value_name
from soakwatch.plan.parts import DURATION_SCHEMA, Duration, Name, PlanModel, Text, Words
from soakwatch.plan.plan_schema import DIALECT, allow_nothing, cut_to_its_head, plan_schema, tidy

COMMAND_TIMEOUT_S = 600.0
MAX_RUNS = 10_000
MAX_REPEAT = 1000
MAX_NAME = 100
DEFAULT_AT_MOST = 30
ENOUGH_FOR_AN_INTERVAL = 6
"""With fewer values the median has no interval of 95 % without assuming a distribution."""

_SHARE_SCHEMA: dict[str, Plain] = {"type": ["string", "number"], "examples": ["2%"]}
_SCALAR_SCHEMA: dict[str, Plain] = {"type": ["string", "number", "boolean"]}


def _text(value: object) -> object:
    return value_name(value) if isinstance(value, bool | int | float) else value


def _rest(value: object) -> float:
    length = seconds(value)
    if not 0 <= length <= 86400.0:
        raise ValueError(f"{value!r} is not a rest between two runs: write 0s to 24h")
    return length


def _half_width(value: object) -> float:
    width = share(value)
    if not 0 < width < 1:
        raise ValueError(f"{value!r} is not a share between 0 and 100 %: write 2%")
    return width


def _scalar(value: JsonValue) -> JsonValue:
    if value is None or isinstance(value, list | dict):
        raise ValueError(f"expected a word or a number, found {shown(value)}")
    return value


def _name(value: JsonValue) -> JsonValue:
    """A number stays one, for it may go to the plan."""
    name = value_name(value)
    if not (0 < len(name) <= MAX_NAME and name.isprintable() and name == name.strip()):
        raise ValueError(f"{name[:40]!r} cannot be the name of a value: write one line of 1 to {MAX_NAME} characters")
    return value


def _axis(value: object) -> object:
    """A list of values, of which each says itself what it changes, is an axis without paths."""
    if value == []:
        raise ValueError("has no value: write at least one")
    if not isinstance(value, list | Mapping):
        raise ValueError(f"expected a list of values, or {{set: PATH, values: [...]}}; found {shown(value)}")
    return {"set": [], "values": value} if isinstance(value, list) else value


Scalar = Annotated[JsonValue, AfterValidator(_scalar), WithJsonSchema(_SCALAR_SCHEMA)]
ValueName = Annotated[Scalar, AfterValidator(_name)]
Choice = Annotated[Several[Scalar], Field(min_length=1)]
"""A value of an axis, or several."""
Patch = Annotated[
    dict[str, JsonValue] | None,
    Field(description="what changes in the plan: value by path, such as phases.soak.load: 80%"),
]


class AxisValueKeys(PlanModel):
    """A value of an axis with a name of its own, and what it changes in the plan."""

    name: Annotated[ValueName, Field(description="its label")]
    set: Patch = None
    value: Annotated[JsonValue, Field(description="goes to the paths of the axis; default: the name")] = None


AxisValueItem = Annotated[AxisValueKeys, Short("name")]


class AxisKeys(PlanModel):
    """An axis whose values go to the same paths of the plan."""

    set: Annotated[Several[Text], Field(description="path in the plan that its values go to, or several")]
    values: Annotated[
        list[AxisValueItem] | None, Field(description="its values; default: those that include brings")
    ] = None


AxisItem = Annotated[
    AxisKeys,
    BeforeValidator(_axis, json_schema_input_type=Annotated[list[AxisValueItem], Field(min_length=1)] | AxisKeys),
]


class IncludeKeys(PlanModel):
    """Cells by some of their values, and what they change in the plan; a key that is no axis becomes a label."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Choice]

    set: Patch = None

    @property
    def choices(self) -> Mapping[str, Choice]:
        """Values by axis or label."""
        return self.__pydantic_extra__


class Command(PlanModel):
    """A command without a shell, with a limit of time.

    Its words may hold ``{kind}``, the value of an axis or label.
    """

    words: Annotated[Words, Field(alias="run", description="its words")]
    timeout_s: Annotated[Duration, Field(alias="timeout", description="how long it may take")] = COMMAND_TIMEOUT_S


class Until(PlanModel):
    """When a cell was repeated often enough."""

    half_width: Annotated[
        float,
        BeforeValidator(_half_width),
        WithJsonSchema(_SHARE_SCHEMA),
        Field(description="half the width of the 95 % interval of the median, as a share of the median"),
    ]
    of: Annotated[Text, Field(description="figure, such as load.rx.packet.rate")]


class Repeat(PlanModel):
    """Repetitions until the median is known well enough.

    With ``until`` None it is ``at_least`` times, which are also ``at_most``.
    """

    until: Annotated[Until | None, Field(description="when it is enough")]
    at_least: Annotated[int, Field(ge=2, le=MAX_REPEAT, description="repetitions before it is asked")] = (
        ENOUGH_FOR_AN_INTERVAL
    )
    at_most: Annotated[int, Field(ge=2, le=MAX_REPEAT, description="repetitions after which it ends anyway")] = (
        DEFAULT_AT_MOST
    )

    @model_validator(mode="after")
    def _ordered(self) -> Repeat:
        if self.at_most < self.at_least:
            raise ValueError(f"at_most: {self.at_most} is less than at_least: {self.at_least}: raise at_most")
        return self

    @property
    def half_width(self) -> float | None:
        """How narrow the interval of the median must be, as a share of it to either side."""
        return None if self.until is None else self.until.half_width

    @property
    def of(self) -> str:
        """The figure whose median it is."""
        return "" if self.until is None else self.until.of


def _times(number: int) -> Repeat:
    return Repeat.model_construct(until=None, at_least=number, at_most=number)


def _repeat(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: inner for key, inner in value.items() if key != "until" or inner is not None}
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_REPEAT:
        return _times(value)
    until = "{until: {half_width: 2%, of: FIGURE}, at_most: 12}"
    raise ValueError(f"expected 1 to {MAX_REPEAT}, or {until}; found {shown(value)}")


class TestbedKeys(PlanModel):
    """What is different on one testbed."""

    set: Patch = None


class Retry(PlanModel):
    """Which runs are made again."""

    inconclusive: Annotated[
        int,
        Field(ge=0, le=10, description="how often again where the monitor or the generator was at fault"),
    ] = 0


CommandItem = Annotated[Command, Short("run")]
LabelText = Annotated[str, BeforeValidator(_text), WithJsonSchema(_SCALAR_SCHEMA)]


class CampaignKeys(PlanModel):
    """The keys of a campaign."""

    name: Annotated[Name, Field(description="name of the campaign; default: the file's name")]
    plan: Annotated[Text | dict[str, JsonValue], Field(description="file of the base plan, or the plan itself")]
    labels: Annotated[dict[str, LabelText], Field(default_factory=dict, description="labels of every run")]
    matrix: Annotated[
        dict[str, AxisItem],
        Field(min_length=1, description="axes: their values, each a label and what it changes in the plan"),
    ]
    exclude: Annotated[
        list[Annotated[dict[str, Choice], Field(min_length=1)]],
        Field(default_factory=list, description="cells that are left out, by some of their values"),
    ]
    include: Annotated[
        list[IncludeKeys],
        Field(default_factory=list, description="cells that are added, or changed where all named values are theirs"),
    ]
    repeat: Annotated[
        Repeat,
        BeforeValidator(_repeat, json_schema_input_type=Annotated[int, Field(ge=1, le=MAX_REPEAT)] | Repeat),
        Field(description="runs of each cell, or until when", json_schema_extra={"default": 1}),
    ] = _times(1)
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, description="shuffles the order within each block")] = 1
    rest_s: Annotated[
        float,
        BeforeValidator(_rest),
        WithJsonSchema(DURATION_SCHEMA),
        Field(alias="rest", description="pause of a testbed between two runs"),
    ] = 0.0
    before: Annotated[CommandItem | None, Field(description="command before each run")] = None
    after: Annotated[CommandItem | None, Field(description="command after each run")] = None
    before_all: Annotated[CommandItem | None, Field(description="command before the first run")] = None
    after_all: Annotated[CommandItem | None, Field(description="command after the last run")] = None
    beds: Annotated[
        dict[Name, TestbedKeys | None],
        Field(
            alias="testbeds",
            default_factory=dict,
            description="places of which each holds one run at a time; default: this machine",
        ),
    ]
    testbed: Annotated[Text | None, Field(description="the only one of the testbeds that is used")] = None
    retry: Annotated[Retry, Field(description="which runs are made again")] = Retry()
    interrupted: Annotated[
        Literal["repeat", "resume"], Field(description="what becomes of a run whose monitor was killed")
    ] = "repeat"
    web: Annotated[bool, Field(description="serve the live page of each run")] = False
    # Read by ``tables.parse``, when the axes are known; ``TablesKeys`` says what they may have.
    figures: list[JsonValue] | None = None
    tables: JsonValue = None
    claims: JsonValue = None
    limits: JsonValue = None
    compare: JsonValue = None

    @property
    def testbeds(self) -> tuple[Testbed, ...]:
        """The testbeds that are used, in the order of the file; of one without a name the name is ""."""
        used = [(name, bed) for name, bed in self.beds.items() if self.testbed in {None, name}]
        return tuple(Testbed(name, (bed and bed.set) or {}) for name, bed in used) or (Testbed(""),)

    @property
    def retry_inconclusive(self) -> int:
        """How often a run is made again that was inconclusive for the monitor's or the generator's fault."""
        return self.retry.inconclusive


class Outline(CampaignKeys):
    """What a campaign's file says by itself: enough to know how a campaign stands, not to run it.

    ``labels`` go to every run; ``pinned`` cells run on one testbed only.
    ``seconds`` is how long a run of a cell is planned to last, where that is known. ``file`` is the file that was read.
    """

    file: Path
    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    pinned: Mapping[str, str]
    seconds: Mapping[str, float] = {}


class Campaign(Outline):
    """A campaign that can be run: every cell's plan was checked.

    ``plans`` are the plans of the cells as YAML, by cell and testbed. ``digest`` is of all that makes runs comparable:
    two campaigns of one digest are one campaign. ``base_text`` is the file of the base plan, "" where it is inline;
    ``reference`` the calibration of its plan.
    """

    plans: Mapping[tuple[str, str], str]
    digest: str
    base_text: str
    reference: Path | None = None


def campaign_schema() -> dict[str, Plain]:
    """The schema (draft 2020-12) that editors can hold a campaign against; an inline plan has that of plans.

    It knows less than ``soakwatch campaign plan``: paths into the plan, and values that patch nothing.
    """
    needed = ("plan", "matrix")
    schema: dict[str, Plain] = CampaignKeys.model_json_schema()
    definitions = _dict(schema.setdefault("$defs", {}))
    plan = plan_schema()
    for name, definition in _dict(plan.pop("$defs", {})).items():
        definitions.setdefault(name, definition)
    plan.pop("$schema")
    definitions["plan"] = plan
    keys = _dict(schema["properties"])
    keys["plan"] = {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/plan"}],
        "description": "file of the base plan, relative to this file, or the plan itself",
    }
    asked = TablesKeys.model_json_schema()
    definitions.update(_dict(asked["$defs"]))
    keys.update(_dict(asked["properties"]))
    for definition in definitions.values():
        cut_to_its_head(_dict(definition))
    allow_nothing(keys, needed)
    schema["required"] = list(needed)
    tidy(schema)
    return {"$schema": DIALECT, **schema, "title": "Soakwatch campaign", "description": "A campaign of Soakwatch."}


def _dict(value: Plain) -> dict[str, Plain]:
    assert isinstance(value, dict)
    return value
