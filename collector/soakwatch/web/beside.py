"""The server beside a run: it comes and goes with it, and whatever becomes of it, the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soakwatch.errors import SoakwatchError
from soakwatch.web.access import WebPlan


@contextmanager
def web_beside(
    plan: WebPlan | None, folder: Path, now_ns: Callable[[], int], complain: Callable[[str], None]
) -> Iterator[str]:
    """Serve a run while the block lasts; yields what people are told of it, empty where nothing is served.

    What makes that impossible (a port that is taken, a certificate that is none) is one sentence to ``complain``.
    """
    if plan is None:
        yield ""
        return
    # What speaks HTTP is not for runs without it.
    from soakwatch.web.serving import serve_run

    try:
        served = serve_run(plan, folder, now_ns)
    except (SoakwatchError, OSError) as error:
        why = str(error) if isinstance(error, SoakwatchError) else error.strerror or type(error).__name__
        complain(f"warning: {why}; the run goes on without its event API")
        yield ""
        return
    with served:
        yield f"; events to {served.told}"
