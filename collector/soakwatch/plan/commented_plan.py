"""The commented plan that ``soakwatch init`` writes."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import yaml

from soakwatch.core.yaml import Plain
from soakwatch.plan import process_data
from soakwatch.plan.target_address import LOCAL, targets_of

_DRAFT = """\
# A plan of Soakwatch.
# Check it before the run: soakwatch check PLAN. Run: soakwatch run PLAN. Rules and their parameters: soakwatch rules.
name: {name}
duration: {duration}

# Stretches of the run, in order; they must make up the duration, which may then be left out. Known: baseline, ramp,
# soak, stress, spike, recovery, cooldown. Without them the whole run is one soak. For 24h, say:
# phases: [{{baseline: 30m}}, {{soak: 22h}}, {{stress: 30m}}, {{recovery: 1h}}]{phases}

# A calendar start needs its zone (Z = UTC). Cron names the next time: 0 20 * * mon-fri Europe/Berlin (without a zone:
# that of this machine). Without a start the run starts at once.
# start: 2026-11-27T20:00:00Z

# Labels, by which runs are found and compared; versions in quotes. A command or a package is read at the start:
# labels: {{release: "7.2", testbed: rack-3, build: {{command: [ssh, dut, cat /etc/build]}}, nginx: {{package: nginx}}}}

targets:
{targets}

watch:
  # A name or glob, or {{pid: N, name: shown}}, {{pidfile: FILE, name: shown}}, {{cmdline: REGEX, name: shown}}.
  processes: [{processes}]
  interfaces: all  # or a list of names and globs, such as [eth0, "ens*"]

# Every rule applies wherever it finds its metrics; name only what differs: a parameter, false to switch a rule off,
# required: false where "inconclusive" must not prevent a pass.
rules: {{}}

# Planned events are announced, must happen, and must be over in time; a script can make them happen, again and again.
# events:
#   - {{kind: failover, at: 12h, within: 10m, expect: {{reboot: 1}}}}
#   - {{kind: switch, at: 6h, every: 2h, run: [ssh, dut, request chassis routing-engine master switch], timeout: 60s}}

# What a finding triggers: a command, a webhook, evidence of the device that is kept in the record.
# hooks:
#   [{{on: fail, capture: {{commands: [uptime], files: [/var/core/*]}}, webhook: env:WEBHOOK, limit: 5 per 10m}}]
"""
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")


_ROLE = "  # dut (judged), generator (what loads it) or monitor (the machine that watches)"
_SHARED = "    # shared: true  # other programs run here too: growth of the machine as a whole only warns"
_SOURCE = "  # more sources: soakwatch pollers, soakwatch loads"


def draft(
    name: str,
    duration: str,
    interval: str,
    processes: tuple[str, ...],
    addresses: tuple[str, ...] = (LOCAL,),
    phases: str = "",
    load: str = "",
) -> str:
    """The text of a plan that polls this machine, or what the addresses name. ``phases`` and the keys of a source
    ``iperf3`` are YAML, "" for none. Raises PlanError.
    """
    listed = ", ".join(_flow(process_data(process)) for process in processes)
    lines: list[str] = []
    targets = targets_of(addresses, interval)
    for target, shape in targets.items():
        shown = "dut" if list(targets) == [LOCAL] else target
        first = not lines
        lines += [f"  {_quoted(shown)}:", f"    role: dut{_ROLE if first else ''}"]
        lines += [*([_SHARED] if first else []), "    sources:"]
        sources = shape["sources"]
        assert isinstance(sources, list)
        for number, source in enumerate(sources):
            assert isinstance(source, dict)
            ((poller, keys),) = source.items()
            lines.append(f"      - {poller}: {_flow(keys)}{_SOURCE if not number and len(lines) == 4 else ''}")
    if load:
        lines += ["  tg:", "    role: generator", "    sources:", f"      - {load}"]
    return _DRAFT.format(
        name=_quoted(name),
        duration=duration,
        phases=f"\nphases: {phases}" if phases else "",
        targets="\n".join(lines),
        processes=listed,
    )


def _flow(data: Plain) -> str:
    if isinstance(data, str):
        return _quoted(data)
    if isinstance(data, dict):
        return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in data.items()) + "}"
    return json.dumps(data, ensure_ascii=False)


def _quoted(text: str) -> str:
    """Text as a YAML scalar: plain where that reads back as the same text, in quotes elsewhere."""
    if _WORD.fullmatch(text):
        with suppress(yaml.YAMLError):
            if yaml.safe_load(f"{{key: {text}}}") == {"key": text}:
                return text
    return json.dumps(text, ensure_ascii=False)
