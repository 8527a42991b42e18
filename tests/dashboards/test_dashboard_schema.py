"""The JSON holds to Grafana's own types: schemas made from its npm package, so that a misspelt key is found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError

from soakwatch.grafana import dashboards

VERSION = "10.4.0"
"""The oldest of Grafana's packages whose types are complete; what came later is in ``LATER``."""
PACKAGES = (f"@grafana/schema@{VERSION}", "ts-json-schema-generator@2.9.0")
PANELS = {"timeseries": "TimeSeries", "stat": "Stat", "table": "Table", "heatmap": "Heatmap",
          "statushistory": "StatusHistory"}  # fmt: skip
LATER = {
    "percentChangeColorMode",
    "perPage",
    "selectionMode",
    "allowCustomValue",
    "auto",
    "auto_count",
    "auto_min",
    "definition",
}
"""Keys that the SDK writes by itself and an older Grafana passes over."""
MARKS = "annotations"
"""The type of an annotation's query is that of Grafana's own store, not of a data source: its comment says so."""

Schemas = Mapping[str, Draft7Validator]


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """A validator of the dashboard, and of each kind of panel's options and fields; kept in the user's cache."""
    npm, npx = shutil.which("npm"), shutil.which("npx")
    if npm is None or npx is None:
        pytest.skip("npm is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soakwatch" / f"grafana-schema-{VERSION}"
    if not (cache / "complete").exists():
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "package.json").write_text("{}")
        (cache / "tsconfig.json").write_text(
            '{"compilerOptions": {"strict": true, "skipLibCheck": true}, "include": []}'
        )
        words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
        if subprocess.run(words, cwd=cache, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("npm cannot install Grafana's types here")
        raw = Path("node_modules/@grafana/schema/dist/esm/raw")
        generate(npx, cache, raw / "dashboard/x/dashboard_types.gen.d.ts", "Dashboard", "dashboard")
        for kind, name in PANELS.items():
            types = raw / f"composable/{kind}/panelcfg/x/{name}PanelCfg_types.gen.d.ts"
            generate(npx, cache, types, "Options", f"{kind}.options")
            if kind != "stat":  # its fields have nothing of their own
                generate(npx, cache, types, "FieldConfig", f"{kind}.fields")
        (cache / "complete").touch()
    return {file.stem: Draft7Validator(json.loads(file.read_text())) for file in cache.glob("schema.*.json")}


def generate(npx: str, cache: Path, types: Path, name: str, made: str) -> None:
    """One schema."""
    words = [npx, "--no-install", "ts-json-schema-generator", "--path", str(types), "--type", name, "--no-type-check",
             "--tsconfig", "tsconfig.json", "-o", f"schema.{made}.json"]  # fmt: skip
    done = subprocess.run(words, cwd=cache, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def wrong(validator: Draft7Validator, part: object) -> list[str]:
    """What does not hold, but for what is known."""
    found = [leaf for error in validator.iter_errors(without_later(part)) for leaf in leaves(error)]
    return [
        f"{'/'.join(map(str, one.absolute_path))}: {one.message}" for one in found if MARKS not in one.absolute_path
    ]


def without_later(part: object) -> object:
    """A part of the JSON without the keys of ``LATER``."""
    if isinstance(part, dict):
        return {key: without_later(value) for key, value in part.items() if key not in LATER}
    return [without_later(value) for value in part] if isinstance(part, list) else part


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    """The innermost causes of an error."""
    if not error.context:
        yield error
    for inner in error.context or ():
        yield from leaves(inner)


@pytest.mark.parametrize("name", sorted(dashboards()))
def test_dashboard_holds_to_grafanas_types(name: str, schemas: Schemas) -> None:
    """The dashboard, and of each panel its options and what its fields have of their own."""
    board = json.loads(dashboards()[name])
    told = wrong(schemas["schema.dashboard"], board)
    for panel in board["panels"]:
        kind = panel["type"].replace("-", "")
        told += wrong(schemas[f"schema.{kind}.options"], panel["options"])
        own = panel["fieldConfig"]["defaults"].get("custom")
        if own and f"schema.{kind}.fields" in schemas and kind != "table":  # the SDK leaves a table's cells to Grafana
            told += wrong(schemas[f"schema.{kind}.fields"], own)
    assert told == []


def test_a_misspelt_key_is_found(schemas: Schemas) -> None:
    """The test can fail: one letter more in a panel's options."""
    board = json.loads(dashboards()["soakwatch-run.json"])
    panel = next(panel for panel in board["panels"] if panel["type"] == "timeseries")
    assert wrong(schemas["schema.timeseries.options"], {**panel["options"], "legendd": {}})
    assert wrong(schemas["schema.dashboard"], {**board, "refreshh": "5s"})
