"""The last line of a command's standard error, to say why it ended."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

MAX_BYTES = 4096
_MAX_SHOWN = 160
_SECRET_NAME = re.compile(r"pass|token|secret|credential|auth|api_?key|private", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"(?i)([\w-]*(?:pass(?:word|wd|phrase)?|token|secret|credentials?|api[_-]?key|authorization|bearer)[\w-]*)"
    r"""(["']?\s*[=:]?\s*(?:(?:bearer|basic)\s+)?)["']?[^\s"',;]+"""
)
_IN_ADDRESS = re.compile(r"(\w+://)[^/\s@]*@")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def last_line(data: bytes, environment: Mapping[str, str] = os.environ) -> str:
    """The last line that is not blank, without what looks like a secret; "" if there is none.

    >>> last_line(b"a\\nError: token=abc refused for https://bob:pw@dut/\\n\\n", {})
    'Error: token=… refused for https://…@dut/'
    >>> last_line(b"login with hunter22 failed", {"DUT_PASSWORD": "hunter22"})
    'login with … failed'
    """
    lines = [_CONTROL.sub("", line).strip() for line in data.decode(errors="replace").splitlines()]
    text = next((line for line in reversed(lines) if line), "")
    for name, value in environment.items():
        if len(value) > 3 and _SECRET_NAME.search(name):
            text = text.replace(value, "…")
    text = _IN_ADDRESS.sub(r"\1…@", text)
    text = _SECRET_VALUE.sub(r"\1\2…", text)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def reason_in(text: str) -> str:
    """The last line that is not blank, of a program that is given no secret; words for none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
