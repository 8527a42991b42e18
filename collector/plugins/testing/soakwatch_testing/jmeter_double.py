"""A double of JMeter, for machines without one: a shell script that starts another process, as JMeter's starts a Java.

It takes JMeter's arguments and writes what JMeter 5.6 writes with ``-l``: a head, and a row for each sample, of as many
threads as the property ``users`` says, 20 samples a second each. It asks nobody anything. The properties ``dies`` (it
ends with an error after so many samples), ``stuck`` (it writes nothing) and ``deaf`` (it ignores signals) make it
misbehave. ``tally`` begins the name of files, one for each process, with how many samples it made.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

VERSION = "5.6.3"
PERIOD_S = 0.05
_HEAD = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)
PLAN = """\
<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="2.1">
  <hashTree>
    <TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="soak" enabled="true">
      <elementProp name="TestPlan.user_defined_variables" elementType="Arguments">
        <collectionProp name="Arguments.arguments"/>
      </elementProp>
    </TestPlan>
    <hashTree>
      <ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="users" enabled="true">
        <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
        <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
          <boolProp name="LoopController.continue_forever">false</boolProp>
          <intProp name="LoopController.loops">-1</intProp>
        </elementProp>
        <stringProp name="ThreadGroup.num_threads">${__P(users,1)}</stringProp>
        <stringProp name="ThreadGroup.ramp_time">0</stringProp>
        <boolProp name="ThreadGroup.scheduler">false</boolProp>
      </ThreadGroup>
      <hashTree>
        <HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="page" enabled="true">
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
            <collectionProp name="Arguments.arguments"/>
          </elementProp>
          <stringProp name="HTTPSampler.domain">127.0.0.1</stringProp>
          <stringProp name="HTTPSampler.port">${__P(port)}</stringProp>
          <stringProp name="HTTPSampler.path">/</stringProp>
          <stringProp name="HTTPSampler.method">GET</stringProp>
          <boolProp name="HTTPSampler.use_keepalive">true</boolProp>
        </HTTPSamplerProxy>
        <hashTree/>
      </hashTree>
    </hashTree>
  </hashTree>
</jmeterTestPlan>
"""
"""A test plan that JMeter 5.6 runs: threads that ask 127.0.0.1 for a page, again and again."""


def script(folder: Path) -> Path:
    """An executable that runs the double as a process of its own, for the key ``program``."""
    file = folder / "jmeter"
    file.write_text(f'#!/bin/sh\n"{sys.executable}" -m {__name__} "$@"\nexit $?\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def main(words: Sequence[str]) -> int:
    """Runs until a signal. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="jmeter")
    parser.add_argument("-n", action="store_true")
    parser.add_argument("-t")
    parser.add_argument("-l", type=Path)
    parser.add_argument("-j")
    parser.add_argument("-J", action="append", default=[])
    parser.add_argument("--version", action="store_true")
    given = parser.parse_args(words)
    if given.version:
        print(f"   /_/   \\_\\_|   |_| \\_\\ {VERSION}\n\nCopyright (c) 1999-2024 The Apache Software Foundation")
        return 0
    properties = dict(word.partition("=")[::2] for word in given.J)
    if properties.get("deaf"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    users, dies, made = int(properties.get("users", 1)), int(properties.get("dies", 0)), 0
    if properties.get("stuck"):
        time.sleep(3600)
    with given.l.open("a", encoding="utf-8", buffering=1) as file:
        print(_HEAD, file=file)
        while True:
            for user in range(1, users + 1):
                now_ms = time.time_ns() // 10**6
                name = f"users 1-{user}"
                row = f"{now_ms},7,page,200,OK,{name},text,true,,123,118,{users},{users},http://127.0.0.1/,6,0,1"
                print(row, file=file)
                made += 1
                if properties.get("tally"):
                    Path(f"{properties['tally']}-{os.getpid()}").write_text(str(made), encoding="utf-8")
            if dies and made >= dies:
                print("Uncaught Exception java.lang.OutOfMemoryError: token=abc in thread", file=sys.stderr)
                return 1
            time.sleep(PERIOD_S)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
