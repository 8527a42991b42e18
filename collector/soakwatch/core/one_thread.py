"""Linear algebra on one thread: the monitor computes little and must not take CPU from what it watches.

OpenBLAS starts a thread per processor when loaded, each with its stack, and spins for ever if it cannot get one because
of a memory limit. So the environment says one thread before numpy is imported; programs that a plan starts get the
user's settings back.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the number of threads of linear algebra libraries."""
_OURS = "SOAKWATCH_SET_THREADS"


def use_one_thread(environ: MutableMapping[str, str]) -> None:
    """Sets one thread unless the user chose a number; call it before numpy is imported.

    >>> environ = {"OMP_NUM_THREADS": "4"}
    >>> use_one_thread(environ)
    >>> environ["OMP_NUM_THREADS"], environ["OPENBLAS_NUM_THREADS"], users_own(environ)
    ('4', '1', {'OMP_NUM_THREADS': '4'})
    """
    ours = [name for name in THREADS if name not in environ]
    if ours:
        environ.update({**dict.fromkeys(ours, "1"), _OURS: " ".join(ours)})


def users_own(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without our settings, for the user's programs."""
    ours = {_OURS, *environ.get(_OURS, "").split()}
    return {name: value for name, value in environ.items() if name not in ours}
