"""Check the notifications of a plan, or send a test message to each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.core.errors import EXIT_PASS, EXIT_USAGE

if TYPE_CHECKING:
    from soakwatch.engine.notify.message import Message
    from soakwatch.engine.notify.sending import Sent


@click.command(
    epilog="""\b
Examples:
  soakwatch notify plan.yaml                      list the services, and whether their addresses are complete
  soakwatch notify plan.yaml --test               send a test message to each
  soakwatch notify --test --to env:SOAK_NOTIFY_URL
\b
In a plan:
  notify:
    - to: env:SOAK_NOTIFY_URL                     a secret: env:NAME or file:PATH
      on: [start, failure, end]                   default: failure and end
      attach: report                              or summary (Markdown text), or none
\b
The secret is an Apprise URL:
  mailtos://USER:PASSWORD@smtp.example?from=soak@example&to=team@example     e-mail (?mode=starttls, or ssl)
  slack://TOKEN_A/TOKEN_B/TOKEN_C/#soak, slack://xoxb-…/#soak                Slack; files need a bot token
  workflows://HOST/WORKFLOW/SIGNATURE                                        Microsoft Teams
  tgram://BOT_TOKEN/CHAT_ID                                                  Telegram
  jsons://HOST/PATH, xmls://HOST/PATH                                        a webhook
Others: https://appriseit.com/services/. The first failure is sent at once; later failures are summarised at most every
30 minutes and 20 times per run. Messages never delay a running soak; at its end they delay it by 30 s at most.
The final message carries the HTML report if the service accepts files and it is below 10 MB, else a Markdown summary.
\b
Exit codes: 0 no problems; 2 an address is incomplete, or a message could not be sent."""
)
@click.argument("plan", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--test", is_flag=True, help="Send one test message to each.")
@click.option("--to", metavar="REF", help="Without a plan: reference to an Apprise URL, env:NAME or file:PATH.")
def command(plan: Path | None, to: str | None, *, test: bool) -> int:
    """Check the notifications of PLAN without sending anything; with --test, send a message to each."""
    from soakwatch.core.errors import PlanError
    from soakwatch.core.secrets import reference
    from soakwatch.engine.notify.sending import Sender
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.plan import load_plan

    if (plan is None) == (to is None):
        raise click.UsageError("name either a plan or --to env:NAME")
    if to is not None:
        try:
            reference(to)
        except ValueError as error:
            raise PlanError(f"--to: {error}") from None
        name, references, files = "", [to], [True]
        if not test:
            answer = Sender(to).check()
            if answer.trouble:
                raise PlanError(answer.trouble)
            click.echo(f"{to}: {answer.service}" + ("" if answer.files else " (accepts no files)"))
            return EXIT_PASS
    else:
        assert plan is not None
        loaded = load_plan(plan, device=False)
        if not loaded.notify:
            raise PlanError(f"{plan}: the plan has no notify: section; add notify: [{{to: env:SOAK_NOTIFY_URL}}]")
        if not test:
            for line in check_notifications(loaded):
                click.echo(line)
            return EXIT_PASS
        name, references = loaded.name, [receiver.to for receiver in loaded.notify]
        files = [receiver.attach == "report" for receiver in loaded.notify]
    return _send_test(name, references, files)


def _send_test(name: str, references: list[str], files: list[bool]) -> int:
    """Send a test message to each receiver, with a small page in place of the report."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    from soakwatch.engine.notify.message_text import sample_message
    from soakwatch.engine.notify.sending import Sender

    with tempfile.TemporaryDirectory(prefix="soakwatch-notify-") as folder, ThreadPoolExecutor(4) as crew:
        page = Path(folder) / "test.html"
        page.write_text("<!doctype html><title>Test</title><p>The report of a run would be here.</p>", "utf-8")
        letters = [sample_message(name, page if attached else None) for attached in files]

        def sent(to: str, letter: Message) -> Sent:
            return Sender(to, pauses_s=()).send(letter)

        outcomes = list(crew.map(sent, references, letters))
    for to, outcome in zip(references, outcomes, strict=True):
        service = f" ({outcome.answer.service})" if outcome.answer.service else ""
        attached = ", with an attachment" if outcome.answer.attached else ""
        if outcome.well:
            click.echo(f"{to}{service}: sent{attached}")
        else:
            click.echo(f"soakwatch: {to}{service}: not sent: {outcome.answer.trouble}", err=True)
    return EXIT_PASS if all(outcome.well for outcome in outcomes) else EXIT_USAGE
