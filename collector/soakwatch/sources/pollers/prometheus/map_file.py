"""The form of a map: which sample of an exporter is which metric of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.regex import user_regex
from soakwatch.sources.mapping import check_mapping
from soakwatch_model.metric import BY_NAME, COUNTER

_FOLDER = Path(__file__).parent / "maps"


class MapEntry(BaseModel):
    """One mapping. ``labels`` are the labels of our object; ``{name}`` stands for the exporter's label ``name``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(alias="from", description="the exporter's name of the sample, such as node_load1")]
    metric: Annotated[str, Field(description="metric of the catalogue")]
    where: Annotated[
        dict[str, str],
        Field(default_factory=dict, description="labels the sample must have: whole regular expressions"),
    ]
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="labels of our object")]
    scale: Annotated[float, Field(default=1.0, description="factor to the metric's unit")]
    total: Annotated[bool, Field(default=False, description="add up samples that fall on one object")]
    less: Annotated[str | None, Field(default=None, description="subtract this sample of the same labels")]
    idle: Annotated[
        dict[str, str] | None,
        Field(default=None, description="share of the increase that is not of these labels, since the poll before"),
    ]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_mapping(self.metric, self.labels, self.scale)
        if (self.less or self.idle) and BY_NAME[self.metric].kind == COUNTER:
            raise ValueError(f"{self.metric} is a counter, which is kept raw: less and idle make gauges")
        for text in (*self.where.values(), *(self.idle or {}).values()):
            user_regex(text)
        return self


class MapFile(BaseModel):
    """A file of ``maps/``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    metrics: list[MapEntry]


def installed_maps() -> Mapping[str, MapFile]:
    """The maps that come with Soakwatch, by name. Raises PlanError for a file that is none."""
    maps = {}
    for file in sorted(_FOLDER.glob("*.yaml")):
        try:
            maps[file.stem] = MapFile.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
        except (ValidationError, yaml.YAMLError) as error:
            raise PlanError(f"{file.name}: {error}") from None
    return maps
