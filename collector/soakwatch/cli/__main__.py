"""``python -m soakwatch.cli``: the command ``soakwatch``."""

from __future__ import annotations

from soakwatch.cli.main import main

if __name__ == "__main__":
    main()
