"""The errors for users: one sentence with place and remedy, and an exit code. Any other exception at the command line
is a defect and shows its traceback only with ``--debug``."""

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_BROKEN = 0, 1, 2, 3, 4
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class SoakwatchError(Exception):
    """An error that the user can correct; ``str()`` is its sentence, ``exit_code`` what the command returns."""

    exit_code = EXIT_USAGE


class PlanError(SoakwatchError):
    """The plan cannot be used; each sentence begins with file:line:column if it has a place.

    ``str()`` is the first sentence, ``problems`` are all, in order of their places.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(problems[0] if problems else "the plan cannot be used")
        self.problems: tuple[str, ...] = problems


class RecordError(SoakwatchError):
    """A record cannot be read or written."""


class MonitorBrokenError(SoakwatchError):
    """The monitor itself broke; the record stays usable."""

    exit_code = EXIT_BROKEN
