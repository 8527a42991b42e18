"""Checks of the cores: governor, turbo, idle states, and how evenly they share the receive work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.machine.check_result import CheckResult, Problem, combined
from soakwatch_rules.machine.description import Card, Cores, Machine
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.wording.quantities import counted, duration, first_few, quantity

CPU: Final = "part=cpu"
_BEST: Final = "performance"
_ENOUGH: Final = 4  # with fewer cores or queues, a single one is no small part of them
_FEW: Final = 4  # one in four or fewer is few


def check_governor(machine: Machine, why_steady: str) -> CheckResult:
    """The frequency governor; ``why_steady`` says why a steady clock is needed here ("" if it is not)."""
    found = machine.governors
    if not found:
        return CheckResult(not_judged=("frequency governor (not reported)",)) if why_steady else CheckResult()
    shown = _shares(found)
    if len(found) > 1:
        text = f"the cores have different frequency governors ({shown}): results depend on which core did the work; "
        return CheckResult((Problem(CPU, f"{text}{_SET}"),))
    if not why_steady:
        return CheckResult(not_judged=(f"frequency governor {shown} (neither a generator nor in poll mode)",))
    steady = _BEST in found or set(machine.preferences) == {_BEST}
    if steady:
        return CheckResult(in_order=(f"frequency governor {shown}",))
    text = f"the frequency governor is {shown} and not {_BEST} although {why_steady}: the clock follows the load, and "
    return CheckResult((Problem(CPU, f"{text}results vary with it; {_SET}"),))


_SET: Final = "set it on all cores: `cpupower frequency-set -g performance`"


def check_turbo(machine: Machine) -> CheckResult:
    """Turbo that some cores have and others have not."""
    if len(machine.turbo) > 1:
        text = (
            f"turbo differs between cores ({_shares(machine.turbo)}): results depend on which core did the work; "
            "switch it on or off for all of them"
        )
        return CheckResult((Problem(CPU, text),))
    return CheckResult(in_order=(f"turbo {_shares(machine.turbo)}",)) if machine.turbo else CheckResult()


def check_idle_states(machine: Machine, polls: str, polled: Cores, exit_s: float) -> CheckResult:
    """Idle states that take longer than ``exit_s`` to leave, allowed on polling cores (on any core if it is unknown
    which ones poll); ``polls`` is the evidence that cores poll, "" without any."""
    states = machine.idle_states
    if not polls:
        return CheckResult(not_judged=("idle states (no core polls)",)) if states else CheckResult()
    if not states:
        return CheckResult(not_judged=("idle states (not reported)",))
    deep = [state for state in states if state.open_to(polled) and state.exit_s > exit_s]
    if not deep:
        return CheckResult(in_order=("idle states where cores poll",))
    longest = max(state.exit_s for state in deep)
    names = first_few([f"{state.name} {duration(state.exit_s)}" for state in deep])
    text = (
        f"cores poll ({polls}), but idle states that take longer than {duration(exit_s)} to leave are enabled "
        f"({names}): a core that rests for a moment, and caches and clocks that cores share, come back late; boot with "
        f"`intel_idle.max_cstate=1 processor.max_cstate=1`, or run `cpupower idle-set -D {exit_s * 1e6:.0f}`"
    )
    return CheckResult((Problem(CPU, text, longest, exit_s, "s"),))


@dataclass(frozen=True, slots=True)
class Uneven:
    """Limits from which receive work is on too few cores: ``share`` of it on at most a quarter of them, which spend at
    least ``busy`` of their time on it while the others idle for at least ``idle`` of theirs."""

    share: float
    busy: float
    idle: float


def check_receive_spread(
    series: Sequence[Series], window: Window, machine: Machine, polled: Cores, uneven: Uneven
) -> CheckResult:
    """Receiving on few cores while others idle, by core times, else by queue tables and interrupts of the cards."""
    times = _times(series, window, polled | machine.apart)
    if not times:
        return combined(_tables(card, machine, polled) for card in machine.cards if not card.down)
    if len(times) < _ENOUGH:
        return CheckResult()
    ranked = sorted(times, key=lambda core: (-times[core][0], core))
    total = sum(softirq for softirq, _ in times.values())
    few: list[int] = []
    done = 0.0
    for core in ranked:
        if done >= uneven.share * total:
            break
        few.append(core)
        done += times[core][0]
    others = [core for core in ranked if core not in few]
    if not few or not others:
        return CheckResult(in_order=("the cores share the work of receiving",))
    busy, idle = done / len(few), sum(times[core][1] for core in others) / len(others)
    if len(few) * _FEW > len(times) or busy < uneven.busy or idle < uneven.idle:
        return CheckResult(in_order=(f"receiving takes at most {quantity(times[ranked[0]][0], '1')} of a core",))
    cores = first_few([str(core) for core in sorted(few)])
    text = (
        f"{quantity(done / total, '1')} of the work of receiving is on {len(few)} of {len(times)} cores ({cores}), "
        f"which spend {quantity(busy, '1')} of their time on it, while the others are idle for {quantity(idle, '1')}: "
        "spread queues and interrupts (`ethtool -L`, `ethtool -X`, affinity of the interrupts), or let RPS do it"
    )
    return CheckResult((Problem(CPU, text, busy, uneven.busy, "1"),))


def _times(series: Sequence[Series], window: Window, without: Cores) -> dict[int, tuple[float, float]]:
    """By core number, the shares of its time spent on softirqs and idle."""
    shares: dict[str, dict[int, float]] = {"softirq": {}, "idle": {}}
    for each in series:
        core, mode = label(each.object, "core") or "", label(each.object, "mode") or ""
        if mode in shares and core.isdecimal() and int(core) not in without:
            count, seconds = Tally([each.finite()]).between(window.begin_ns, window.end_ns)
            if seconds > 0:
                shares[mode][int(core)] = count / seconds
    softirq, idle = shares["softirq"], shares["idle"]
    return {core: (softirq[core], idle[core]) for core in softirq.keys() & idle.keys()}


def _tables(card: Card, machine: Machine, polled: Cores) -> CheckResult:
    """A card whose queue table or interrupts use a quarter or less of the available queues or cores."""
    if card.in_user_space:
        return CheckResult()
    problems, in_order = [], []
    used, queues = len(card.rss), card.rx_queues or 0
    if used and queues >= _ENOUGH:
        if used * _FEW <= queues:
            text = (
                f"the RSS table of {card.name} spreads packets over {used} of {counted(queues, 'queue')}: one core for "
                f"each of these does all the work; `ethtool -X {card.name} equal {queues}` uses all of them"
            )
            problems.append(Problem(card.part, text, float(used), float(queues), "{queue}"))
        else:
            in_order.append(f"RSS table of {card.name}")
    others = machine.online - machine.apart - polled
    most = min(card.interrupts, queues or card.interrupts, len(others))
    if most >= _ENOUGH and card.interrupt_cores:
        cores = len(card.interrupt_cores)
        if cores * _FEW <= most:
            text = (
                f"the {card.interrupts} interrupts of {card.name} go to {counted(cores, 'core')} of {len(others)}: "
                "give each a core of its own (irqbalance, or smp_affinity_list of each interrupt)"
            )
            problems.append(Problem(card.part, text, float(cores), float(most), "{core}"))
        else:
            in_order.append(f"interrupts of {card.name}")
    return CheckResult(tuple(problems), tuple(in_order))


def _shares(counts: Mapping[str, int]) -> str:
    """``performance``, or ``on for 8 cores, off for 24 cores``."""
    return ", ".join(
        f"{name} for {counted(number, 'core')}" if number and len(counts) > 1 else name
        for name, number in counts.items()
    )
