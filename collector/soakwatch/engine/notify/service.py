"""Checks a service, or sends it one message, by Apprise. Runs in a process of its own, because Apprise takes 45 MB,
logs addresses, and may hang."""

from __future__ import annotations

import logging
from collections.abc import Callable
from html import escape
from pathlib import Path

from apprise import Apprise, AppriseAsset, AppriseAttachment, NotifyBase, NotifyFormat, NotifyType, OverflowMode
from apprise.manager_plugins import NotificationManager

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.engine.notify.message import MAX_ATTACHED_BYTES, Answer, Message
from soakwatch.engine.notify.troubles import UNKNOWN, Trouble, trouble_of

_RESERVE = 100  # characters left for what a service adds
_CUT = "… the rest is in the report."
_TONES = {
    "info": NotifyType.INFO,
    "success": NotifyType.SUCCESS,
    "warning": NotifyType.WARNING,
    "failure": NotifyType.FAILURE,
}


class _LogReader(logging.Handler):
    """Keeps the most specific trouble that log lines report, and none of the lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.trouble: Trouble = UNKNOWN

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the line's trouble if it is more specific than those before."""
        trouble = trouble_of(record.getMessage())
        if trouble.rank > self.trouble.rank:
            self.trouble = trouble


def ask(to: str, message: Message | None) -> Answer:
    """Checks the address behind a reference; with a message, sends it there once."""
    log = logging.getLogger("apprise")
    log.handlers.clear()
    log.propagate = False
    try:
        address = secret(to).reveal().strip()
    except PlanError as error:
        return Answer(trouble=str(error))
    service, trouble = _service(address)
    if service is None:
        return Answer(trouble=f"{to} {trouble}")
    name, files = _schema(service), _takes_files(service)
    if message is None:
        return Answer(name, files)
    report = message.report if files and message.report is not None and _small(message.report) else None
    body, form = _body(message, service, attached=report is not None)
    log_reader = _LogReader()
    log.addHandler(log_reader)
    log.setLevel(logging.DEBUG)
    sending = Apprise(asset=service.asset)
    sending.add(service)
    try:
        sent = sending.notify(
            body=body,
            title=message.title,
            notify_type=_TONES[message.tone],
            body_format=form,
            attach=None if report is None else AppriseAttachment(str(report)),
        )
    except Exception as defect:  # noqa: BLE001 - one of a hundred plugins; its text may hold the address
        return Answer(name, files, f"Apprise raised {type(defect).__name__}", again=True)
    finally:
        log.setLevel(logging.CRITICAL)
        log.removeHandler(log_reader)
    if not sent:
        return Answer(name, files, log_reader.trouble.sentence, log_reader.trouble.again)
    return Answer(name, files, attached=report is not None)


def _service(address: str) -> tuple[NotifyBase | None, str]:
    """The service of an address, or what is wrong with it, without quoting the address."""
    # No image of another server in messages, nothing stored on disk.
    asset = AppriseAsset(
        app_id="Soakwatch",
        app_desc="Soakwatch",
        app_url="",
        async_mode=False,
        secure_logging=True,
        image_url_mask="",
        image_url_logo="",
        storage_mode="memory",
    )
    schema, colon, _ = address.partition("://")
    known = schema.lower() in _schemas()
    try:
        service = Apprise.instantiate(address, asset=asset)
    except Exception:  # noqa: BLE001 - its text may hold the address
        service = None
    if service is None:
        if not colon:
            return None, "holds no Apprise URL: write one such as mailtos://USER:PASSWORD@HOST?to=WHOM into it"
        if not known:
            return None, "holds an address of no service that Apprise knows: mailtos, slack, workflows, tgram, json …"
        return (
            None,
            f"holds no complete address of the service {schema.lower()}: see its page in Apprise's documentation",
        )
    service.overflow_mode = OverflowMode.TRUNCATE
    return service, ""


def _schemas() -> frozenset[str]:
    known = NotificationManager().schemas()  # type: ignore[no-untyped-call]
    return frozenset(str(schema) for schema in known)


def _schema(service: NotifyBase) -> str:
    named = service.secure_protocol if getattr(service, "secure", False) else service.protocol
    for name in (named, service.protocol, service.secure_protocol):
        if isinstance(name, str):
            return name
        if name:
            return str(next(iter(name)))
    return ""


def _takes_files(service: NotifyBase) -> bool:
    # Slack's plugin takes files, its webhooks do not.
    by_hook = str(getattr(service, "mode", "")).startswith(("hook", "workflow")) and _schema(service) == "slack"
    return bool(service.attachment_support) and not by_hook


def _small(report: Path) -> bool:
    try:
        return 0 < report.stat().st_size < MAX_ATTACHED_BYTES
    except OSError:
        return False


def _body(message: Message, service: NotifyBase, *, attached: bool) -> tuple[str, NotifyFormat]:
    """The text that fits, and its format."""
    # Apprise would cut a longer one in the middle of an HTML entity, and the service would refuse it.
    cost = _COSTS.get(_format(service), _plain)
    room = service.body_maxlen - cost(message.title) - _RESERVE
    body = _fitting(message.body, room, cost)
    left = room - sum(map(cost, body.splitlines()))
    markdown = cost is _escaped  # then the summary, which is Markdown, needs no escaping
    summary = "" if attached else _fitting(message.summary, left, _plain if markdown else cost)
    if not summary:
        return body, NotifyFormat.TEXT
    if markdown:
        from apprise.conversion import text_to_markdown

        body = text_to_markdown(body)  # type: ignore[no-untyped-call]
    return f"{body}\n\n{summary}", NotifyFormat.MARKDOWN if markdown else NotifyFormat.TEXT


def _format(service: NotifyBase) -> str:
    """How a service writes plain text: some have several formats, and an address may choose one."""
    return str(service.resolve_format(NotifyFormat.TEXT).value)


def _plain(line: str) -> int:
    return len(line) + 2


def _escaped(line: str) -> int:
    """Maximum length of a plain line as Markdown."""
    return 2 * len(line) + 2


def _html(line: str) -> int:
    """Length of a plain line as Apprise writes it in HTML."""
    return len(escape(line).replace(" ", "&nbsp;")) + 8


_COSTS = {"html": _html, "markdown": _escaped}


def _fitting(text: str, room: int, cost: Callable[[str], int]) -> str:
    """As many whole lines as fit, and a note that the rest is left out."""
    lines = text.splitlines()
    costs = [cost(line) for line in lines]
    if sum(costs) <= room:
        return text
    kept: list[str] = []
    left = room - cost(_CUT)
    for line, needed in zip(lines, costs, strict=True):
        left -= needed
        if left < 0:
            break
        kept.append(line)
    return "\n".join([*kept, _CUT]) if kept else ""
