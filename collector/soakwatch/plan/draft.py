"""The commented plan that ``soakwatch init`` writes."""

from __future__ import annotations

import json
import re

from soakwatch.plan import process_data

_DRAFT = """\
# A plan of Soakwatch.
# Look before the run: soakwatch check PLAN. Run: soakwatch run PLAN. Rules and their parameters: soakwatch rules.
name: {name}
duration: {duration}

# Stretches of the run, in order; they must make up the duration, which may then be left out. Known: baseline, ramp,
# soak, stress, spike, recovery, cooldown. Without them the whole run is one soak. For 24h, say:
# phases: [{{baseline: 30m}}, {{soak: 22h}}, {{stress: 30m}}, {{recovery: 1h}}]

# A calendar start needs its zone (Z = UTC). Without it the run starts at once.
# start: 2026-11-27T20:00:00Z

targets:
  dut:
    role: dut  # dut (judged), generator (what loads it) or monitor (the machine that watches)
    sources:
      - local: {{interval: {interval}}}  # this machine; what else there is: soakwatch pollers, soakwatch loads

watch:
  # A name or glob, or {{pid: N, name: shown}}, {{pidfile: FILE, name: shown}}, {{cmdline: REGEX, name: shown}}.
  processes: [{processes}]
  interfaces: all  # or a list of names and globs, such as [eth0, "ens*"]

# Every rule applies wherever it finds its metrics; name only what differs: a parameter, false to switch a rule off,
# required: false where "inconclusive" must not hold up a pass.
rules: {{}}

# Planned events are announced, must happen, and must be over in time.
# events:
#   - {{kind: failover, at: 12h, within: 10m, expect: {{reboot: 1}}}}
"""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def draft(name: str, duration: str, interval: str, processes: tuple[str, ...]) -> str:
    """The text of a plan that polls this machine."""
    listed = ", ".join(_flow(process) for process in processes)
    return _DRAFT.format(name=_quoted(name), duration=duration, interval=interval, processes=listed)


def _flow(process: str) -> str:
    data = process_data(process)
    return _quoted(data) if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _quoted(text: str) -> str:
    plain = _WORD.fullmatch(text) and text.lower() not in {
        "true",
        "false",
        "null",
        "on",
        "off",
        "yes",
        "no",
        "y",
        "n",
    }
    return text if plain else json.dumps(text, ensure_ascii=False)
