"""What can be said of a record: whole and as sealed, changed, or not to be decided; and by whom it was signed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from soakwatch.core.errors import EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.core.ssh_signature import SignatureError, key_of, signer
from soakwatch.record import RECORD_NAME, RecordView
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.record.seal import Change, Checked, Seal
from soakwatch.runs.sealing import TimeStampError, check_stamp
from soakwatch_model.tree import parse_json

EXIT_CHANGED = 1


class SealState(StrEnum):
    """What came of it."""

    WHOLE = "whole and as sealed"
    CHANGED = "changed"
    UNSEALED = "not sealed"
    OTHER_DIGEST = "not the sealed record that was asked for"
    UNSIGNED = "sealed but not signed"
    NOT_BY_THEM = "not signed by an allowed signer"
    SEALED_AGAIN = "sealed again since"
    UNSTAMPED = "sealed without a time stamp"
    NOT_STAMPED_BY_THEM = "not stamped by that authority"


_EXIT_CODES = {
    SealState.WHOLE: EXIT_PASS,
    SealState.CHANGED: EXIT_CHANGED,
    SealState.OTHER_DIGEST: EXIT_CHANGED,
    SealState.NOT_BY_THEM: EXIT_CHANGED,
    SealState.NOT_STAMPED_BY_THEM: EXIT_CHANGED,
}


@dataclass(frozen=True, slots=True)
class Verification:
    """``lines`` say it to people, the first of them in brief. ``signed_by`` is who signed by the file of allowed
    signers, "" where none was given; ``key`` the key that the signature says it is of, ``stamped`` the time of a time
    stamp that was checked."""

    state: SealState
    run: str
    checked: Checked
    lines: tuple[str, ...]
    key: str = ""
    signed_by: str = ""
    stamped: str = ""

    @property
    def exit_code(self) -> int:
        """0 whole and as sealed, 1 changed or not by whom it should be, 3 cannot be decided."""
        return _EXIT_CODES.get(self.state, EXIT_INCONCLUSIVE)

    def document(self) -> dict[str, object]:
        """It for programs."""
        seal = self.checked.seal
        return {
            "run": self.run,
            "state": self.state.value,
            "digest": None if seal is None else seal.digest,
            "sealed": None if seal is None else seal.sealed,
            "seal": None if seal is None else seal.number,
            "links": self.checked.links,
            "key": self.key or None,
            "signed_by": self.signed_by or None,
            "stamped": self.stamped or None,
            "events_since": self.checked.events_since,
            "changes": [{"table": c.table, "row": c.row or None, "what": c.what} for c in self.checked.changes],
        }


def verify(
    view: RecordView, allowed: Path | None = None, digest: str = "", authority: Path | None = None
) -> Verification:
    """Check a record against its chain and its last seal, and the seal against a digest, a file of allowed signers and
    the certificate of a time-stamp authority where these are given. Raises RecordError."""
    checked = view.check()
    run = _run(view)
    if beside := _told_beside(view, checked):
        checked = replace(checked, changes=(*checked.changes, beside))
    seal = checked.seal
    if checked.changed:
        what = "sealed" if seal is not None else "written"
        lines = [f"changed since it was {what}: {run}", *(f"  {change}" for change in checked.changes)]
        return Verification(SealState.CHANGED, run, checked, (*lines, *_about(checked)), _key(seal))
    if seal is None:
        return _unsealed(view, run, checked)
    key = _key(seal)
    if digest and digest.lower() != seal.digest:
        if digest.lower() in checked.earlier:
            line = f"sealed again since the seal with that digest: {run}; what changed between the two is not kept"
            return Verification(SealState.SEALED_AGAIN, run, checked, (line, *_about(checked)), key)
        line = f"not the digest of this record: {run}"
        return Verification(SealState.OTHER_DIGEST, run, checked, (line, *_about(checked)), key)
    about, name = list(_about(checked)), ""
    if allowed is not None:
        if not seal.signature:
            return Verification(SealState.UNSIGNED, run, checked, (f"{SealState.UNSIGNED}: {run}", *about))
        try:
            name = signer(seal.document, seal.signature, allowed)
        except SignatureError as error:
            line = f"sealed, but not by an allowed signer: {run}"
            return Verification(SealState.NOT_BY_THEM, run, checked, (line, f"  {error}", *about), key)
        about.append(f"  signed by {name} with {key}")
    elif key:
        about.append(f"  signed with {key}, not checked: name those who may sign with --allowed-signers")
    else:
        about.append("  not signed: whoever can write the file can seal it again; compare the digest")
    stamped = ""
    if authority is not None:
        if not seal.stamp:
            line = f"{SealState.UNSTAMPED}: {run}"
            return Verification(SealState.UNSTAMPED, run, checked, (line, *about), key, name)
        try:
            stamped = check_stamp(seal.document, seal.stamp, authority)
        except TimeStampError as error:
            line = f"sealed, but not stamped by that authority: {run}"
            return Verification(SealState.NOT_STAMPED_BY_THEM, run, checked, (line, f"  {error}", *about), key, name)
        about.append(f"  time stamp {stamped}, by the authority of {authority}")
    elif seal.stamp:
        about.append("  time stamp not checked: name the root certificate of its authority with --tsa-ca")
    return Verification(SealState.WHOLE, run, checked, (f"{SealState.WHOLE}: {run}", *about), key, name, stamped)


def _unsealed(view: RecordView, run: str, checked: Checked) -> Verification:
    state = lifecycle_of(view.metas(), view.path)
    why = {"ended": "has ended", "broken off": "broke off", "running": "goes on", "waiting": "goes on"}[state]
    line = f"not sealed: {run} {why}; its chain of {checked.links} links was checked up to now, and nothing is changed"
    return Verification(SealState.UNSEALED, run, checked, (line,))


def _about(checked: Checked) -> tuple[str, ...]:
    seal = checked.seal
    if seal is None:
        return ()
    since = f", {checked.events_since} events added since" if checked.events_since else ""
    again = f", seal {seal.number}" if seal.number > 1 else ""
    return f"  digest {seal.digest}", f"  sealed {seal.sealed}{again}, {seal.links} links{since}"


def _told_beside(view: RecordView, checked: Checked) -> Change | None:
    """That verdict.json beside the record names the seal of another one."""
    try:
        document = parse_json((view.path.parent / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    seal = document.get("seal") if isinstance(document, dict) else None
    told = seal.get("digest") if isinstance(seal, dict) else None
    own = () if checked.seal is None else (*checked.earlier, checked.seal.digest)
    if told is None or told in own or view.path.name != RECORD_NAME:
        return None
    return Change("(folder)", "", f"verdict.json is of a record with the digest {told}")


def _key(seal: Seal | None) -> str:
    if seal is None or not seal.signature:
        return ""
    return key_of(seal.signature) or "a key that cannot be read"


def _run(view: RecordView) -> str:
    folder = view.path.parent.name if view.path.name == "record.sqlite" else view.path.name
    return folder or view.path.name
