"""Makes the schemas of Grafana's own types from its npm package: ``python tests/dashboards/grafana_types.py``.

Needs npm and its registry; what comes out (``grafana-VERSION.schema.json``, the words of its comments left out) is
committed, so that no test depends on either. The types are those of Grafana's package ``@grafana/schema``, Apache-2.0.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = {"10.4": "10.4.0", "11.6": "11.6.0", "12": "12.0.0"}
"""The package whose types hold for each version of ``soakwatch dashboards --grafana``, its first release."""
GENERATOR = "ts-json-schema-generator@2.9.0"
PANELS = {
    "timeseries": "TimeSeries",
    "stat": "Stat",
    "table": "Table",
    "heatmap": "Heatmap",
    "statushistory": "StatusHistory",
    "statetimeline": "StateTimeline",
}
HERE = Path(__file__).parent


def file_of(version: str) -> Path:
    """Where the schemas of a version lie."""
    return HERE / f"grafana-{version}.schema.json"


def run(folder: Path, *words: str) -> None:
    """A command in a folder. Raises SystemExit with what it said."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")


def generated(npx: str, folder: Path, types: Path, name: str) -> object:
    """The schema of one type, without descriptions."""
    run(
        folder,
        npx,
        "--no-install",
        "ts-json-schema-generator",
        "--path",
        str(types),
        "--type",
        name,
        "--no-type-check",
        "--tsconfig",
        "tsconfig.json",
        "-o",
        "schema.json",
    )
    schema: object = json.loads((folder / "schema.json").read_text())
    return bare(schema)


def bare(part: object) -> object:
    """A schema without the words of its comments; a property that is called so stays."""
    if isinstance(part, dict):
        return {key: bare(value) for key, value in part.items() if key != "description" or isinstance(value, dict)}
    return [bare(value) for value in part] if isinstance(part, list) else part


def make(version: str, npm: str, npx: str, folder: Path) -> None:
    """The file of one version."""
    (folder / "package.json").write_text("{}")
    (folder / "tsconfig.json").write_text('{"compilerOptions": {"strict": true, "skipLibCheck": true}, "include": []}')
    run(folder, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"@grafana/schema@{version}", GENERATOR)
    raw = Path("node_modules/@grafana/schema/dist/esm/raw")
    schemas = {"dashboard": generated(npx, folder, raw / "dashboard/x/dashboard_types.gen.d.ts", "Dashboard")}
    for kind, name in PANELS.items():
        types = raw / f"composable/{kind}/panelcfg/x/{name}PanelCfg_types.gen.d.ts"
        schemas[f"{kind}.options"] = generated(npx, folder, types, "Options")
        if kind != "stat":  # its fields have nothing of their own
            schemas[f"{kind}.fields"] = generated(npx, folder, types, "FieldConfig")
    file_of(version).write_text(json.dumps(schemas, sort_keys=True, separators=(",", ":")) + "\n")


def main() -> int:
    """All versions."""
    npm, npx = shutil.which("npm"), shutil.which("npx")
    if npm is None or npx is None:
        print("npm is not installed")
        return 2
    for version in VERSIONS.values():
        with tempfile.TemporaryDirectory() as folder:
            make(version, npm, npx, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
