"""The account of one source in one window, from the columns of its polls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from soakwatch.record._effective_polls import EffectivePolls, PollColumns
from soakwatch.record.model import OUTCOME_NUMBERS, OUTCOMES, Ints, Source
from soakwatch_model.case import Ledger, Silence
from soakwatch_model.sample import PollOutcome
from soakwatch_model.window import Window

_MAX_ERRORS = 3
_SILENT_INTERVALS = 3
_MAX_SILENCES = 1000


def ledger_of(source: Source, shown: str, account: EffectivePolls, errors: Mapping[int, str], window: Window) -> Ledger:
    """Count the polls that were due in the window by outcome; ``shown`` is the source's label.

    A poll that lost some of its requests does not count as answered, but it ends a silence: the device was heard.
    """
    polls = account.polls
    answered = polls.outcome == OUTCOME_NUMBERS[PollOutcome.OK]
    heard = answered | (polls.outcome == OUTCOME_NUMBERS[PollOutcome.LOSSY])
    answers_ns = np.sort(polls.start_ns[heard])
    return Ledger(
        target=source.target,
        source=shown,
        interval_s=source.interval_ns * 1e-9,
        due=int(polls.outcome.size),
        got=int(answered.sum()),
        lost=_lost(polls.outcome[~answered]),
        longest_gap=_longest_gap(answers_ns, window),
        errors=_most_frequent(polls.error[~answered], errors),
        required=source.required,
        silences=_silences(answers_ns, polls, ~heard, source.interval_ns, window),
        recovered=int(account.late.sum()),
        poller=source.name,
    )


def timed_out(account: EffectivePolls, window: Window | None) -> EffectivePolls:
    """The polls as if none that was due in the window had been answered; unchanged without a window."""
    if window is None:
        return account
    polls = account.polls
    silent = (polls.due_ns >= window.begin_ns) & (polls.due_ns < window.end_ns)
    silent &= polls.outcome == OUTCOME_NUMBERS[PollOutcome.OK]
    outcome = np.where(silent, OUTCOME_NUMBERS[PollOutcome.TIMEOUT], polls.outcome)
    return EffectivePolls(replace(polls, outcome=outcome), account.late & ~silent)


def _lost(outcomes: Ints) -> dict[str, int]:
    numbers, counts = np.unique(outcomes, return_counts=True)
    return {OUTCOMES[number].value: count for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)}


def _silences(
    answers_ns: Ints, polls: PollColumns, lost: NDArray[np.bool_], interval_ns: int, window: Window
) -> tuple[Silence, ...]:
    """The longest stretches of at least three intervals without an answer, in order of time."""
    edges = np.concatenate([[window.begin_ns], np.clip(answers_ns, window.begin_ns, window.end_ns), [window.end_ns]])
    lengths = np.diff(edges)
    long = np.flatnonzero(lengths >= _SILENT_INTERVALS * interval_ns)
    long = np.sort(long[np.argsort(-lengths[long], kind="stable")[:_MAX_SILENCES]])
    due_ns, outcome = polls.due_ns[lost], polls.outcome[lost]
    return tuple(
        Silence(
            Window(begin, end),
            _lost(outcome[(due_ns > begin) & (due_ns < end)]),
        )
        for begin, end in zip(edges[long].tolist(), edges[long + 1].tolist(), strict=True)
    )


def _longest_gap(answers_ns: Ints, window: Window) -> Window | None:
    if not answers_ns.size:
        return None
    inside = np.clip(answers_ns, window.begin_ns, window.end_ns)
    edges = np.concatenate([[window.begin_ns], inside, [window.end_ns]])
    longest = int(np.argmax(np.diff(edges)))
    return Window(int(edges[longest]), int(edges[longest + 1]))


def _most_frequent(numbers: Ints, errors: Mapping[int, str]) -> tuple[str, ...]:
    distinct, counts = np.unique(numbers[numbers > 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MAX_ERRORS]
    return tuple(errors[int(distinct[index])] for index in order)
