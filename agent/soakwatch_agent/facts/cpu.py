"""Processors: model, clocks, energy preferences, C-states and their limits, flaws, cores kept apart, NUMA nodes."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from soakwatch_agent.facts.machine import Machine, Notes, core_list, whole
from soakwatch_agent.procfs import parse_cpuinfo, parse_keyed_kib
from soakwatch_model.core_list import cores_of
from soakwatch_model.tree import Tree

_BASE = "/sys/devices/system/cpu"
_CORE = re.compile(r"cpu(\d+)")
_NODE = re.compile(r"node(\d+)")
_STATE = re.compile(r"state(\d+)")


def cpu(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    """What the processors are, and how their clocks are governed."""
    facts: Dict[str, Tree] = {}
    cores = parse_cpuinfo(machine.text("/proc/cpuinfo"))
    first = cores[0] if cores else {}
    model = first.get("model name") or first.get("Model") or first.get("cpu model")
    notes.put(facts, "model", model, "the processor's model is not known")
    notes.put(facts, "logical_cores", len(cores) or None, "the number of cores is not known")
    packages = {core["physical id"] for core in cores if "physical id" in core}
    notes.put(facts, "sockets", len(packages) or None)
    physical = {(core.get("physical id"), core["core id"]) for core in cores if "core id" in core}
    notes.put(facts, "physical_cores", len(physical) or None)
    notes.put(facts, "microcode", first.get("microcode"), "the microcode's version is not known")
    notes.put(facts, "smt", machine.line(f"{_BASE}/smt/control"))
    for key in ("online", "isolated", "nohz_full"):
        notes.put(facts, key, machine.line(f"{_BASE}/{key}"))
    notes.put(facts, "rcu_nocbs", _parameter(machine, "rcu_nocbs"))
    governors = by_value(machine, "cpufreq/scaling_governor")
    missing = "there is no frequency governor: this system does not control its clock"
    notes.put(facts, "governor", _summary(governors), missing)
    if len(governors) > 1:
        facts["governor_cores"] = {value: core_list(where) for value, where in sorted(governors.items())}
    for key, name in (
        ("frequency_min_khz", "cpufreq/scaling_min_freq"),
        ("frequency_max_khz", "cpufreq/scaling_max_freq"),
        ("frequency_driver", "cpufreq/scaling_driver"),
        ("energy_preference", "cpufreq/energy_performance_preference"),
        ("energy_bias", "power/energy_perf_bias"),
    ):
        notes.put(facts, key, _summary(by_value(machine, name)))
    modes = (machine.line(f"{_BASE}/{driver}/status") for driver in ("intel_pstate", "amd_pstate"))
    notes.put(facts, "frequency_mode", next(filter(None, modes), None))
    no_turbo, boost = machine.line(f"{_BASE}/intel_pstate/no_turbo"), machine.line(f"{_BASE}/cpufreq/boost")
    notes.put(facts, "turbo", no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None)
    notes.put(facts, "uncore_khz", _uncore(machine) or None)
    flaws: Dict[str, Tree] = {}
    for name in machine.names(f"{_BASE}/vulnerabilities"):
        notes.put(flaws, name, machine.line(f"{_BASE}/vulnerabilities/{name}"))
    notes.put(facts, "mitigations", flaws or None, "the mitigations of processor flaws are not known")
    return facts


def by_value(machine: Machine, name: str) -> Dict[str, List[int]]:
    """The cores by value of their file ``cpuN/name``."""
    values: Dict[str, List[int]] = {}
    for folder in machine.names(_BASE):
        core = _CORE.fullmatch(folder)
        value = machine.line(f"{_BASE}/{folder}/{name}") if core else None
        if core and value is not None:
            values.setdefault(value, []).append(int(core[1]))
    return values


def _summary(values: Dict[str, List[int]]) -> Optional[str]:
    """The value that all cores share, or each value with the number of its cores."""
    if len(values) <= 1:
        return next(iter(values), None)
    return ", ".join(f"{value} ({len(cores)} cores)" for value, cores in sorted(values.items()))


def _uncore(machine: Machine) -> Dict[str, Tree]:
    folder = f"{_BASE}/intel_uncore_frequency"
    clocks: Dict[str, Tree] = {}
    for name in machine.names(folder):
        least, most = (machine.line(f"{folder}/{name}/{end}_freq_khz") for end in ("min", "max"))
        if least is not None and most is not None:
            clocks[name] = f"{least} to {most}"
    return clocks


def _parameter(machine: Machine, name: str) -> Optional[str]:
    """The value of a parameter of the kernel's command line."""
    for word in (machine.line("/proc/cmdline") or "").split():
        key, _, value = word.partition("=")
        if key == name and value:
            return value
    return None


def cstates(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    """Idle states: exit latency and target residency in µs, the cores each is disabled on, and what limits them.

    ``deepest`` is the state of the longest exit latency that some core has enabled.
    """
    facts: Dict[str, Tree] = {}
    driver = machine.line(f"{_BASE}/cpuidle/current_driver")
    notes.put(facts, "driver", driver if driver != "none" else None)
    notes.put(facts, "governor", machine.line(f"{_BASE}/cpuidle/current_governor"))
    limits: Dict[str, Tree] = {}
    for key, path in (
        ("intel_idle.max_cstate", "/sys/module/intel_idle/parameters/max_cstate"),
        ("processor.max_cstate", "/sys/module/processor/parameters/max_cstate"),
    ):
        notes.put(limits, key, machine.whole(path))
    notes.put(limits, "idle", _parameter(machine, "idle"))
    notes.put(facts, "limits", limits or None)
    states: Dict[str, Dict[str, List[int]]] = {}  # by state: by disabled flag: cores
    numbers: Dict[str, Dict[str, Tree]] = {}
    for folder in machine.names(_BASE):
        core = _CORE.fullmatch(folder)
        for state in machine.names(f"{_BASE}/{folder}/cpuidle") if core else ():
            if not core or not _STATE.fullmatch(state):
                continue
            here = f"{_BASE}/{folder}/cpuidle/{state}"
            name = machine.line(f"{here}/name") or state
            if name not in numbers:
                numbers[name] = {"name": name}
                for key, file in (("latency_us", "latency"), ("residency_us", "residency")):
                    notes.put(numbers[name], key, machine.whole(f"{here}/{file}"))
            disabled = machine.line(f"{here}/disable") or "0"
            states.setdefault(name, {}).setdefault("off" if disabled != "0" else "on", []).append(int(core[1]))
    # A state may be disabled on some cores only; one that is enabled anywhere counts for the deepest.
    enabled: List[Dict[str, Tree]] = []
    for name, cores in states.items():
        if "on" in cores:
            enabled.append(numbers[name])
        off = cores.get("off", [])
        numbers[name]["disabled"] = ("on all cores" if "on" not in cores else f"on {core_list(off)}") if off else "no"
    if enabled:
        deepest = max(enabled, key=lambda state: int(str(state.get("latency_us", 0))))
        facts["deepest"] = deepest["name"]
        notes.put(facts, "deepest_latency_us", deepest.get("latency_us"))
    if numbers:
        facts["states"] = list(numbers.values())
    else:
        notes.add("there are no C-states to be read: this system does not control its idle states")
    return facts


def numa(machine: Machine) -> Dict[str, Tree]:
    """The NUMA nodes with their cores, memory and distances."""
    nodes: Dict[str, Tree] = {}
    base = "/sys/devices/system/node"
    for name in machine.names(base):
        if not _NODE.fullmatch(name):
            continue
        node: Dict[str, Tree] = {}
        cores = machine.line(f"{base}/{name}/cpulist")
        node["cores"] = cores if cores is not None else "none"
        node["number_of_cores"] = len(cores_of(cores or ""))
        lines = machine.text(f"{base}/{name}/meminfo").splitlines()
        total = parse_keyed_kib("\n".join(line.partition(f"Node {name[4:]} ")[2] for line in lines)).get("MemTotal")
        if total is not None:
            node["memory_bytes"] = total
        distance = machine.line(f"{base}/{name}/distance")
        if distance is not None:
            node["distances"] = " ".join(distance.split())
        nodes[name] = node
    return nodes


def numa_node(machine: Machine, folder: str) -> Optional[int]:
    """The NUMA node of a device; None if the firmware does not tell (-1)."""
    node = whole(machine.line(f"{folder}/numa_node"))
    return node if node is not None and node >= 0 else None
