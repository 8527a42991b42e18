"""The errors that a person sees: one sentence with the place and the remedy, and an exit code. Nothing else is raised
across the command line; everything else is a defect and shows its traceback only with ``--debug``."""

EXIT_PASS, EXIT_FAIL, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_BROKEN = 0, 1, 2, 3, 4
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class SoakwatchError(Exception):
    """Something that the user can correct; ``str()`` is the sentence, ``exit_code`` what the command returns."""

    exit_code = EXIT_USAGE


class PlanError(SoakwatchError):
    """The plan cannot be used; each sentence begins with file:line:column where there is one.

    ``str()`` is the first sentence, ``problems`` are all of them, in the order of their places.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(problems[0] if problems else "the plan cannot be used")
        self.problems: tuple[str, ...] = problems


class RecordError(SoakwatchError):
    """A record cannot be read or written."""


class MonitorBrokenError(SoakwatchError):
    """The monitor itself broke; the record stays usable."""

    exit_code = EXIT_BROKEN
