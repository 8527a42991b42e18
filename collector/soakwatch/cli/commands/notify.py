"""Looks at the notifications of a plan, or tries one: a test message to each, and what came of it."""

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
  soakwatch notify plan.yaml                      which services, and whether their addresses are complete
  soakwatch notify plan.yaml --test               sends a test message to each
  soakwatch notify --test --to env:SOAK_NOTIFY_URL
\b
In a plan:
  notify:
    - to: env:SOAK_NOTIFY_URL                     a secret: env:NAME or file:PATH
      on: [start, failure, end]                   default: failure and end
      attach: report                              or summary (Markdown text), or none
\b
The secret holds an Apprise URL:
  mailtos://USER:PASSWORD@smtp.example?from=soak@example&to=team@example     e-mail (?mode=starttls, or ssl)
  slack://TOKEN_A/TOKEN_B/TOKEN_C/#soak, slack://xoxb-…/#soak                Slack; only a bot token takes files
  workflows://HOST/WORKFLOW/SIGNATURE                                        Microsoft Teams
  tgram://BOT_TOKEN/CHAT_ID                                                  Telegram
  jsons://HOST/PATH, xmls://HOST/PATH                                        a webhook
Others: https://appriseit.com/services/. The first failure is told at once, later ones are summed up at most every
30 minutes, 20 times a run. While the run goes on nothing waits for a message; the end waits 30 s at most.
The HTML report goes with the end where the service takes files and it is below 10 MB, else a Markdown summary.
\b
Exit codes: 0 all is well; 2 an address is not complete, or a message could not be sent."""
)
@click.argument("plan", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--test", is_flag=True, help="Send one test message to each.")
@click.option("--to", metavar="REF", help="Without a plan: the secret that holds an Apprise URL, such as env:NAME.")
def command(plan: Path | None, to: str | None, *, test: bool) -> int:
    """Look at the notifications of PLAN without sending anything; with --test, send a message to each."""
    from soakwatch.core.errors import PlanError
    from soakwatch.core.secrets import reference
    from soakwatch.engine.notify.sending import Sender
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.plan import load_plan

    if (plan is None) == (to is None):
        raise click.UsageError("name a plan, or --to env:NAME, and not both")
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
            click.echo(f"{to}: {answer.service}" + ("" if answer.files else " (takes no files)"))
            return EXIT_PASS
    else:
        assert plan is not None
        made = load_plan(plan, device=False)
        if not made.notify:
            raise PlanError(f"{plan}: nobody is notified: write notify: [{{to: env:SOAK_NOTIFY_URL}}]")
        if not test:
            for line in check_notifications(made):
                click.echo(line)
            return EXIT_PASS
        name, references = made.name, [one.to for one in made.notify]
        files = [one.attach == "report" for one in made.notify]
    return _try(name, references, files)


def _try(name: str, references: list[str], files: list[bool]) -> int:
    """Send a test message to each, with a small page where the report would go."""
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    from soakwatch.engine.notify.message_text import sample_message
    from soakwatch.engine.notify.sending import Sender

    with tempfile.TemporaryDirectory(prefix="soakwatch-notify-") as folder, ThreadPoolExecutor(4) as crew:
        page = Path(folder) / "test.html"
        page.write_text("<!doctype html><title>Test</title><p>Here the report of a run would be.</p>", "utf-8")
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
