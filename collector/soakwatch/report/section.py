"""The sections of a report: each is a module of the folder ``sections``, or of a plug-in that an entry point names.

A module ``sections/NAME.py`` is the section NAME. Others add sections by entry points of the group
``soakwatch.sections``, each naming a module. A section module has

* ``ORDER``: its place in the report (the verdict is 10, the findings 20, the words 90),
* ``TITLE``: its heading,
* ``OPEN``: True if the page shows it unfolded; others are opened by a click or found by the filter,
* ``ALWAYS``: True if a terminal shows it without ``--verbose`` as well; one of a plug-in is always shown,
* ``blocks(page)``: what it says, for all formats (see ``blocks``); None or nothing leaves the section out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import PluginFolder
from soakwatch.report.blocks import Block, Chapter, Format, Text, shown_in
from soakwatch.report.page import Page
from soakwatch_model.finding import Outcome

SECTIONS = PluginFolder("soakwatch.report.sections", "section", "soakwatch.sections")
_PACKAGE = "soakwatch.report.sections."
_FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a stranger's section may raise: it costs its section, and not the report of a night."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section as its module declares it."""

    name: str
    order: int
    title: str
    blocks: Callable[[Page], Sequence[Block] | None]
    foreign: bool = False
    opened: bool = False
    always: bool = False

    def chapter(self, page: Page, form: Format) -> Chapter:
        """What the section says in this format; without blocks it is left out.

        A plug-in's section that fails is replaced by a sentence that says so.
        """
        try:
            blocks = shown_in(self.blocks(page) or (), form)
        except _FAULTS as error:
            if not self.foreign:
                raise
            blocks = (_failed(self.name, error),)
        return Chapter(self.name, self.title, blocks, self.opened)


def all_sections(folder: PluginFolder = SECTIONS) -> tuple[ReportSection, ...]:
    """The sections in the order of the report, those of plug-ins among them.

    Raises PlanError for a module of the folder that is no section; a plug-in's becomes a section that says so.
    """
    sections = [_section(name, folder) for name in folder.names()]
    return tuple(sorted(sections, key=lambda section: (section.order, section.name)))


def _section(name: str, folder: PluginFolder) -> ReportSection:
    try:
        return _declared(name, folder.module(name))
    except PlanError as error:
        if name in PluginFolder(folder.package, folder.word).names():
            raise
        failure = _failed(name, error)
        return ReportSection(name, 99, name, lambda _: (failure,), foreign=True)


def _declared(name: str, module: ModuleType) -> ReportSection:
    order, title = getattr(module, "ORDER", None), getattr(module, "TITLE", None)
    blocks = getattr(module, "blocks", None)
    if not isinstance(order, int | float) or not isinstance(title, str) or not callable(blocks):
        raise PlanError(
            f"the section {name!r} ({module.__name__}) needs ORDER (a number), TITLE (text) and blocks(page): see "
            "soakwatch.report.section"
        )
    return ReportSection(
        name,
        int(order),
        title,
        blocks,
        foreign=not module.__name__.startswith(_PACKAGE),
        opened=getattr(module, "OPEN", False) is True,
        always=getattr(module, "ALWAYS", False) is True,
    )


def _failed(name: str, error: Exception) -> Text:
    return Text(f"the section {name} failed: {type(error).__name__}: {error}", outcome=Outcome.WARN, word="warning")
