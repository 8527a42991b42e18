"""Looks in a record: as artifacts, without secrets, and read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from soakwatch.core.errors import RecordError
from soakwatch.core.redaction import Redaction
from soakwatch.diagnose.look import KIND, MEDIA, Look, look_json, read_look
from soakwatch.record import Artifact, ArtifactEntry, artifact_name
from soakwatch_model.sample import object_labels

FOLDER: Final = "look"
MAX_LOOKS: Final = 200
"""Looks that a report reads."""
_TEXTS: Final = (".txt", ".xml", ".json")


def process_name(process: str) -> str:
    """The name of the process of an object, with its instance if it is not the first."""
    if not process:
        return "host"
    labels = object_labels(process)
    name, instance = labels.get("process", process), labels.get("instance", "0")
    return name if instance in {"", "0"} else f"{name} ({instance})"


def artifacts_of(
    look: Look, kept: Mapping[str, bytes], stamp: str, redaction: Redaction
) -> tuple[Look, list[Artifact]]:
    """The files of a look, secrets replaced: what its programs wrote, and last the look itself, which names them."""
    process = process_name(look.process)
    about = f"look {look.number} at {process}"
    files = []
    for file, data in kept.items():
        text = file.endswith(_TEXTS)
        clean = redaction.output(data) if text else redaction.file(data)
        media = "text/plain" if text else "application/octet-stream"
        name = artifact_name(FOLDER, look.target, process, f"{stamp}-{file}")
        files.append(Artifact(name, media, clean, look.time_ns, KIND, f"{about}: {file}"))
    whole = replace(look, kept=tuple(each.name for each in files))
    document = redaction.output(look_json(whole))
    name = artifact_name(FOLDER, look.target, process, f"{stamp}-look.json")
    return whole, [*files, Artifact(name, MEDIA, document, look.time_ns, KIND, about)]


def looks_of(entries: Iterable[ArtifactEntry], read: Callable[[str], Artifact]) -> tuple[Look, ...]:
    """The looks of a record in order of time."""
    looks = []
    for entry in [each for each in entries if each.media == MEDIA][:MAX_LOOKS]:
        try:
            look = read_look(read(entry.name).data)
        except (RecordError, ValueError):
            continue  # a damaged artifact; verify reports it
        if look is not None:
            looks.append(look)
    return tuple(sorted(looks, key=lambda look: (look.time_ns, look.number)))


def by_process(looks: Iterable[Look]) -> dict[tuple[str, str], list[Look]]:
    """The looks at memory by target and process."""
    grouped: dict[tuple[str, str], list[Look]] = {}
    for look in looks:
        if look.of_cpu:
            continue
        grouped.setdefault((look.target, look.process), []).append(look)
    return grouped
