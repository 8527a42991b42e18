"""The scripts that a plan runs, as a record keeps them: so that the run can be repeated, and what it did be seen.

A command (``run``, of events, hooks and sources) keeps the program that it names, or the file that it hands to an
interpreter (``[python3, switch.py]``), and a driven generator its ``script``, if that is a text file of a person:
nothing below /usr, /bin and the like, nothing binary, nothing with a private key. Each is at most 256 KiB, all together
at most 2 MiB. Of the commands that a campaign runs around a run, the small files that they name are kept too. The
secrets that the plan refers to, and literals that are assigned to what is called a password, token or secret, become
asterisks.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from soakwatch.core.redaction import Redaction
from soakwatch.core.yaml import Plain
from soakwatch.record import Artifact, artifact_name

KIND = "plan"
"""The kind of artifact that such a script is; ``about`` is its path as the plan writes it."""
MASKED = "text/plain; masked"
"""The media type of a script of which something was replaced by asterisks."""
MAX_BYTES = 256 << 10
MAX_TOTAL_BYTES = 2 << 20
MAX_SCRIPTS = 64
MAX_BESIDE = 16
"""Files of a folder that a command names."""
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/proc/", "/sys/", "/dev/", "/nix/", "/snap/")
_MEMORY = "/dev/shm/"  # noqa: S108 - where people keep files, too
_INTERPRETER = re.compile(r"(ba|da|z|k|c|fi|)sh|python[\d.]*|perl|ruby|node|expect|tclsh|lua|env|sudo|nice|timeout|uv")
_ASSIGNED = re.compile(
    rb"(?i)([\w-]*(?:passw|passphrase|token|secret|credential|api_?key|private_?key)[\w-]*[\"']?\s*[:=]\s*)"
    rb"(\"[^\"$\n{]{4,}\"|'[^'\n]{4,}'|(?<==)[A-Za-z0-9+/_.-]{8,}(?=\s|$))"
)
_IN_XML = re.compile(
    rb"(?i)(name=\"[^\"<>]*(?:passw|token|secret|credential|api_?key|authorization)[^\"<>]*\"\s*>)[^<\n]+"
)


def scripts_of(plan: Plain) -> Iterator[str]:
    """The files that the commands of a plan are about: what stands under ``run`` and ``script``, wherever that is.

    >>> list(scripts_of({"events": [{"run": ["./switch.sh", "a"]}, {"run": "reload now"}], "k6": {"script": "a.js"}}))
    ['./switch.sh', 'a.js']
    """
    if isinstance(plan, dict):
        for key, value in plan.items():
            if key == "run" and isinstance(value, str | list):
                if path := script_of(_words(value)):
                    yield path
            elif key == "script" and isinstance(value, str) and value:
                yield value
            else:
                yield from scripts_of(value)
    elif isinstance(plan, list):
        for value in plan:
            yield from scripts_of(value)


def _words(value: str | list[Plain]) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(word for word in value if isinstance(word, str))
    try:
        return tuple(shlex.split(value))
    except ValueError:
        return ()


def script_of(words: Sequence[str]) -> str | None:
    """The file that a command is about: its program by a path, or what it gives to an interpreter; None if neither.

    >>> script_of(["./a.sh"]), script_of(["python3", "-u", "b.py", "x"]), script_of(["bash", "-c", "date"])
    ('./a.sh', 'b.py', None)
    """
    for word in words:
        if _INTERPRETER.fullmatch(PurePosixPath(word).name):
            continue
        if word in {"-c", "-e", "-m"}:  # the program itself, or a module
            return None
        if word.startswith("-") or re.fullmatch(r"[A-Za-z_]\w*=.*|\d+[smh]?", word):
            continue
        return word if "/" in word or word != words[0] else None  # a bare first word is looked up on PATH
    return None


def files_of(words: Sequence[str]) -> Iterator[str]:
    """The files of a command that is run around a run: its script, and what its words name here or beside the script,
    of a folder beside it the files. Nothing outside of this folder but the script."""
    script = script_of(words)
    if script is not None:
        yield script
    beside = PurePosixPath() if script is None else PurePosixPath(script).parent
    parts = (part for word in words for part in (word, word.partition("=")[2]))
    for name in dict.fromkeys(part for part in parts if part != script):
        path = PurePosixPath(name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            continue
        try:
            if Path(path).is_file():
                yield str(path)
            elif not beside.is_absolute() and Path(beside / path).is_file():
                yield str(beside / path)
            elif not beside.is_absolute() and Path(beside / path).is_dir():
                inside = sorted(each for each in Path(beside / path).iterdir() if each.is_file())
                yield from (str(beside / path / each.name) for each in inside[:MAX_BESIDE])
        except OSError:  # a word that is no name of a file
            continue


def scripts_to_keep(
    plan: Plain, redaction: Redaction, start_ns: int, around: Sequence[Sequence[str]] = ()
) -> list[Artifact]:
    """The scripts of a plan, and the files of the commands ``around`` the run, read now from where the monitor runs;
    what cannot be kept is left out."""
    kept: dict[str, Artifact] = {}
    total = 0
    for path in (*scripts_of(plan), *(path for words in around for path in files_of(words))):
        if path in kept or len(kept) >= MAX_SCRIPTS:
            continue
        data = _text_of(Path(path))
        if data is None or total + len(data) > MAX_TOTAL_BYTES:
            continue
        total += len(data)
        clean = _IN_XML.sub(rb"\1***", _ASSIGNED.sub(rb"\1***", redaction.output(data)))
        media = "text/plain" if clean == data else MASKED
        name = artifact_name("plan", f"{len(kept) + 1}-{PurePosixPath(path).name}")
        kept[path] = Artifact(name, media, clean, start_ns, KIND, path)
    return list(kept.values())


def _text_of(path: Path) -> bytes | None:
    try:
        real = os.fspath(path.resolve())
        of_system = real.startswith(_SYSTEM) and not real.startswith(_MEMORY)
        if of_system or not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        data = path.read_bytes()[: MAX_BYTES + 1]
    except (OSError, ValueError):
        return None
    return None if len(data) > MAX_BYTES or b"\0" in data or b"PRIVATE KEY" in data else data
