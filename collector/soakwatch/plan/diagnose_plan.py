"""What a plan allows to be taken of a process of a device under test when it is suspected of a leak: nothing, unless it
is allowed.

``diagnose: {on: suspicion}`` takes looks (memory by kind of mapping, open files, threads, heap and what holds it by the
runtime's own means) at suspicion, in between and at the end, and keeps them in the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from soakwatch.core.validation import Several, Short, Wrong, refused
from soakwatch.plan.hook import is_web_address
from soakwatch.plan.parts import NO, Offset, PlanModel, Text
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch_model.roles import DUT

LONGEST_STOP_S: Final = 10.0
_NOBODY = (
    "diagnose: no target with the role dut is polled by local, ssh or an agent over SSH: looks are taken there, so "
    "remove diagnose, or add such a source"
)


class DiagnosePlan(PlanModel):
    """Looks at a process under suspicion; what they cost is in the record."""

    on: Annotated[
        Literal["suspicion"], Field(description="suspicion: growth of a watched process, or CPU, fails or warns so far")
    ]
    at_most: Annotated[
        int, Field(ge=1, le=10, description="looks at each process: at suspicion, evenly in between, at the end")
    ] = 3
    stop_s: Annotated[
        Offset,
        Field(
            alias="stop_at_most",
            ge=0,
            le=LONGEST_STOP_S,
            description="longest stop of the process that a look may cause; 0s: nothing that stops it",
        ),
    ] = 1.0
    debugger: Annotated[
        bool,
        Field(
            description="gdb may call functions of the process (malloc, Python), and Node open its inspector",
            json_schema_extra=NO,
        ),
    ] = False
    pprof: Annotated[
        Several[Text],
        Field(
            default_factory=list,
            max_length=8,
            description="where programs in Go serve net/http/pprof, as the device reaches it",
        ),
    ]


def _fitting(given: DiagnosePlan | None, info: ValidationInfo) -> DiagnosePlan | None:
    """The key, checked against the targets."""
    targets = info.data.get("targets")
    if given is None or targets is None:  # what is wrong with the targets is reported anyway
        return given
    wrong = list(_wrong_addresses(given))
    reached = any(
        isinstance(source.config, Access) or source.poller == "local"
        for target in targets
        if target.role == DUT
        for source in target.sources
    )
    if not reached:
        wrong.append(Wrong((), _NOBODY))
    if wrong:
        raise refused(*wrong)
    return given


def _wrong_addresses(given: DiagnosePlan) -> Iterator[Wrong]:
    for index, address in enumerate(given.pprof):
        if not is_web_address(address):
            sentence = "diagnose: pprof: this is not a web address: write http://HOST:PORT"
            yield Wrong(("pprof", index), sentence)


Diagnose = Annotated[Annotated[DiagnosePlan, Short("on")] | None, AfterValidator(_fitting)]
