"""The device's journal from a cursor on: lines of services that mean a crash become events."""

from __future__ import annotations

import re
import shlex

from soakwatch.sources.transport.ssh.ask import Ask, parsed
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.kernlog import alarm_of
from soakwatch_agent.procfs import clean
from soakwatch_model.tree import Tree

_CURSOR = re.compile(r"-- cursor: (\S{10,400})")
_MAX_LINES = 500
_MAX_EVENTS = 100
# What systemd, and C and C++ libraries, write when a program ends badly (systemd src/core/service.c, unit.c).
_CRASHES = (
    r"(?P<process>\S+): Main process exited, code=(?:dumped|killed), status=(?P<signal>\S+)",
    r"(?P<process>\S+): Failed with result '(?:core-dump|signal|watchdog)'",
    r"Process (?P<pid>\d+) \((?P<process>[^)]+)\) of user \d+ (?:dumped core|terminated abnormally)",
    r"terminate called (?:after throwing|without an active)",
    r"\*\*\* stack smashing detected|(?:malloc|free|realloc)\(\): (?:invalid|corrupted)|double free",
    r"(?:^|\s)panic: |Assertion [`'].{1,200}' failed",
)
_LINES = (
    *(("process.crash", re.compile(pattern)) for pattern in _CRASHES),
    ("watchdog", re.compile(r"(?P<process>\S+): Watchdog timeout")),
)


class Journal(Ask):
    """Nothing that was logged before the first look, and no line twice: the cursor is the journal's own. A kernel line
    is told by the kernel's log (probe ``kernel``) where that may be read; here only what the kernel log lacks is."""

    every_s = 5.0
    present = "journalctl -q -n 0 --show-cursor | grep -q cursor"
    _cursor = ""

    def command(self) -> str:
        """At most 500 lines of warnings and worse since the cursor."""
        if not self._cursor:
            return "journalctl -q -n 0 --show-cursor"
        cursor = shlex.quote(f"--after-cursor={self._cursor}")
        fields = "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID,_TRANSPORT,_SYSTEMD_UNIT"
        return f"journalctl -q -p 5 -o json {fields} --no-pager --show-cursor {cursor} | tail -n {_MAX_LINES}"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Events of the lines; the cursor goes on."""
        reported = 0
        for line in text.splitlines():
            match = _CURSOR.match(line)
            if match is not None:
                self._cursor = match[1]
            elif self._cursor and line.startswith("{") and reported < _MAX_EVENTS:
                reported += self._line(parsed(line), notes)

    def _line(self, entry: Tree, notes: ProbeAnswer) -> bool:
        message = entry.get("MESSAGE") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(message, str):
            return False  # a message that is no text comes as a list of bytes
        text = clean(message)[:500]
        if entry.get("_TRANSPORT") == "kernel":
            alarm = alarm_of(text) if self._wants.kernel_from_journal() else None
            if alarm is not None:
                notes.event(f"kernel.{alarm.kind}", "", line=text, **alarm.owner)
            return alarm is not None
        for kind, pattern in _LINES:
            match = pattern.search(text)
            if match is not None:
                owner = {key: value for key, value in match.groupdict().items() if value}
                identifier = entry.get("SYSLOG_IDENTIFIER")
                if isinstance(identifier, str):
                    owner.setdefault("process", clean(identifier))
                notes.event(kind, "", line=text, **owner)
                return True
        return False
