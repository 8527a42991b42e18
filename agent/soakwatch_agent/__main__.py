"""``python -m soakwatch_agent`` and the zipapp: the command ``soakwatch-agent``."""

import sys

from soakwatch_agent.cli import main


def run() -> None:
    """Runs the command and leaves with its exit code."""
    sys.exit(main())


if __name__ == "__main__":
    run()
