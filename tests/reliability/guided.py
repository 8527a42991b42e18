"""Attempts at one kind of input that are guided by what they reach (libFuzzer, by atheris): what brings a new branch of
the code is kept and changed further.

``.venv/bin/python -m tests.reliability.guided "command line" --seconds 3600`` tries for an hour. What does harm is
named once for each sort, and kept in ``corpus/``, which every run of the tests tries again. ``--kept DIR`` goes on with
what an earlier call has reached. It needs atheris: ``pip install --group guided``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

PACKAGES = ["soakwatch", "soakwatch_agent", "soakwatch_model", "soakwatch_rules"]
_MEMORY_MB = 3000


def main() -> None:
    """Tries; ends with 0 if nothing did harm, and 1 if something did."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install --group guided")
    with atheris.instrument_imports(include=PACKAGES):
        from tests.reliability.inputs import INPUTS
        from tests.reliability.test_spoilt_inputs import harm, kept

    names = [each.name for each in INPUTS]
    parser = argparse.ArgumentParser(description="Attempts at one kind of input, guided by what they reach.")
    parser.add_argument("name", choices=names)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--kept", type=Path, help="folder of what was reached, to go on with")
    options = parser.parse_args()
    kind = INPUTS[names.index(options.name)]
    folder = Path(tempfile.mkdtemp(prefix="soakwatch-guided-"))
    corpus = options.kept or folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = kind.seeds()
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    found: dict[str, Path] = {}

    def one(data: bytes) -> None:
        why = harm(kind, data, folder)
        if why and why[:60] not in found:
            found[why[:60]] = kept(kind.name, data)
            print(f"HARM: {kind.name}: {why} ({found[why[:60]]})", flush=True)

    limits = [
        f"-max_total_time={options.seconds}",
        f"-rss_limit_mb={_MEMORY_MB}",
        f"-max_len={2 * max(map(len, seeds))}",
    ]
    # Also an example that reaches nothing new is kept, and long ones are tried from the start.
    own = ["-keep_seed=1", "-len_control=0", "-timeout=120", f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *own, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
