"""How this program is started again, and the error of a service that cannot be."""

from __future__ import annotations

import os
import sys
from typing import Tuple


class ServeError(Exception):
    """The service cannot be, in one sentence."""


def program() -> Tuple[str, ...]:
    """The same Python with the zipapp, or with the package."""
    here = os.path.abspath(sys.argv[0])  # noqa: PTH100
    if here.endswith(".pyz"):
        return (sys.executable, "-I", here)
    return (sys.executable, "-m", "soakwatch_agent")
