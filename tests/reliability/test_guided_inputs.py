"""Inputs that are made by what they reach in the code (libFuzzer): read, or refused in words, as spoilt ones.

``SECONDS=3600 tests/run -m slow -s tests/reliability/test_guided_inputs.py`` tries each kind for an hour.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.commands import Tally
from tests.reliability.inputs import REPOSITORY

SECONDS = int(os.environ.get("SECONDS", "30"))
KINDS = ("record", "judged record", "bundle", "command line", "SNMP response", "trap")
_TRIED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


@pytest.mark.slow
@pytest.mark.timeout(len(KINDS) * (SECONDS + 600))
def test_inputs_that_are_guided_do_no_harm(tmp_path: Path, tally: Tally) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install --group guided")
    tried, harms = 0, []
    for kind in KINDS:
        words = [sys.executable, "-m", "tests.reliability.guided", kind, "--seconds", str(SECONDS)]
        done = subprocess.run(
            [*words, "--kept", str(tmp_path / kind)], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        harms += [line for line in said.splitlines() if line.startswith("HARM: ")]
        units = _TRIED.search(said)
        if units is None or done.returncode:
            harms.append(f"{kind}: ended with {done.returncode}: {said[-1000:]}")
        else:
            tried += int(units[1])
    tally(f"inputs of {len(KINDS)} kinds ({', '.join(KINDS)}) that are made by what they reach", tried, harms)
