"""Linear algebra on one thread: what a monitor computes is small, and must not take the processors of what it watches.

OpenBLAS starts a thread for each processor when it is loaded, and waits for ever, busily, for one that it cannot have:
under a limit of memory each thread's stack counts. So the environment says one before numpy is imported; programs that
a plan starts get back what the user had set.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What says how many threads the libraries of linear algebra use."""
_OURS = "SOAKWATCH_SET_THREADS"


def use_one_thread(environ: MutableMapping[str, str]) -> None:
    """Say one thread where the user said nothing; to be called before numpy is imported.

    >>> environ = {"OMP_NUM_THREADS": "4"}
    >>> use_one_thread(environ)
    >>> environ["OMP_NUM_THREADS"], environ["OPENBLAS_NUM_THREADS"], users_own(environ)
    ('4', '1', {'OMP_NUM_THREADS': '4'})
    """
    ours = [name for name in THREADS if name not in environ]
    if ours:
        environ.update({**dict.fromkeys(ours, "1"), _OURS: " ".join(ours)})


def users_own(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment as the user gave it, for a program of the user."""
    ours = {_OURS, *environ.get(_OURS, "").split()}
    return {name: value for name, value in environ.items() if name not in ours}
