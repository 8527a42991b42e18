"""The mirror of one device, read by the agent's probes. Everything here blocks for a moment: call it in a thread."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from soakwatch.sources.transport.ssh.linux.linux_processes import Processes, stat_lines
from soakwatch.sources.transport.ssh.linux.linux_survey import LEDGER_PARTS, SLOW, Survey
from soakwatch.sources.transport.ssh.linux.mirror import Mirror, files_of
from soakwatch.sources.transport.ssh.linux.script import MAX_MAPPINGS, LookRequest
from soakwatch.sources.transport.ssh.shell import Reply
from soakwatch_agent.context import SECOND, HostContext, ProbeAnswer, Watch
from soakwatch_agent.corefiles import CRASH_FOLDERS, locations_of_pattern
from soakwatch_agent.host import Host
from soakwatch_agent.kernlog import alarm_of, parse_record
from soakwatch_agent.memory_ledger.processes import MAPPINGS_OF, STATMS
from soakwatch_agent.memory_ledger.take import PAGE_SIZE
from soakwatch_agent.probes.filesystem import FilesystemProbe
from soakwatch_agent.procfs import clean, parse_cpu_stat
from soakwatch_model.sample import Answer, Fault, Sample, object_text

_MAPS_NS = int(30 * SECOND * 0.95)  # as the probe reads them
_DENIED = re.compile(r"/proc/(\d+)/smaps_rollup.*permission denied", re.IGNORECASE)
_HIDDEN = re.compile(rb"^\S+ /proc proc \S*hidepid=(?!0|off)", re.MULTILINE)
_PID = re.compile(rb"/proc/(\d{1,10})(?!\S)")
_WORKING_FOLDER = re.compile(r"/proc/\d+/cwd")
_NUMBERS = re.compile(rb"\d+")
_IN_PAGES = {
    "/proc/net/sockstat": re.compile(rb"(?<=\bmem )\d+"),
    "/proc/sys/net/ipv4/tcp_mem": _NUMBERS,
    "/proc/sys/net/ipv4/udp_mem": _NUMBERS,
}
"""What counts in pages of the device, and which numbers of it: the probes count in this machine's pages."""
_NEED_PTRACE = "permission denied: PSS and USS need the process's own user or CAP_SYS_PTRACE"
_REGULAR, _KIND = 0o100000, 0o170000  # of a mode
_LISTED = re.compile(r"([0-9a-f]{1,8}) (\d{1,19}) (\d{1,12}) (\d{1,20}) (.+)")
_MAX_FOLDERS = 32


class Replica:
    """See the module. ``first`` is True until a look was read."""

    def __init__(
        self,
        watches: Sequence[Watch],
        interfaces: tuple[str, ...] | None,
        core_folders: Sequence[str],
        probes: Sequence[str] | None,
    ) -> None:
        self.first = True
        self._mirror = Mirror()
        self._mirror.put("/statvfs", b"")  # without it the probe would ask this machine's filesystems
        self._context = HostContext(self._mirror.root, tuple(watches), interfaces, tuple(core_folders))
        self._host = Host(self._context, probes)
        self._mounts = FilesystemProbe(self._context)
        self._notes = ProbeAnswer()
        self._maps_read: dict[int, int] = {}
        self._maps_denied: set[int] = set()
        self._descriptors: dict[int, int | None] = {}
        self._mappings: set[str] = set()
        self._mapped_turn = 0
        self.has_ledger = probes is None or "ledger" in probes
        self.processes = Processes(self._mirror, watches)
        self.cores = CoreFolders(self._mirror, core_folders)
        self.log = KernelLog()

    def close(self) -> None:
        """Closes the probes and removes the mirror."""
        self._host.close()
        self._mirror.close()

    def maps_due(self, pids: Sequence[int], now_ns: int) -> tuple[int, ...]:
        """Pids whose PSS and USS the probe reads in the look at ``now_ns``."""
        return tuple(pid for pid in pids if now_ns >= self._maps_read.get(pid, -_MAPS_NS) + _MAPS_NS)

    def mappings_due(self, pids: Sequence[int]) -> tuple[int, ...]:
        """Pids whose memory by kind of mapping is read in this look: some, in turns."""
        chosen = [pids[(self._mapped_turn + offset) % len(pids)] for offset in range(min(MAX_MAPPINGS, len(pids)))]
        self._mapped_turn += len(chosen)
        return tuple(dict.fromkeys(chosen))

    def take(self, survey: Survey, need: LookRequest, reply: Reply) -> list[int]:
        """Takes the first exchange; returns the pids whose faces are looked at."""
        mirror, parts = self._mirror, reply.parts
        found = files_of(parts.get("files", b""))
        self._take_memory(survey, need.watched, found)
        for path, numbers in _IN_PAGES.items():
            if path in found:
                found[path] = _in_pages_of_here(found[path], numbers, survey.page)
        mirror.only(need.files, found)
        if need.files and SLOW[0] in need.files:
            mirror.only([path for path in SLOW if path not in need.files], {})
        if need.ledger:
            mirror.only([path for path in LEDGER_PARTS if path not in need.files], {})
            mirror.put(PAGE_SIZE, b"%d" % survey.page)
            mirror.put(STATMS, parts.get("memories", b""))
            self._take_mappings(parts)
        for pid in need.limited:
            if f"/proc/{pid}/limits" in found:
                mirror.put(f"/proc/{pid}/limits", found[f"/proc/{pid}/limits"])
        for index, path in enumerate(need.pidfiles):
            data = parts.get(f"pidfile {index}", b"")
            if data:
                mirror.put(path, data)
            else:
                mirror.drop(path)
        for block in survey.blocks:
            mirror.folder(f"/sys/block/{block}")
        self.cores.take(need.core_folders, parts)
        self._take_maps(need.mapped, parts, reply.complaints)
        self._descriptors = _descriptors(parts.get("descriptors", b""))
        if need.kernel_log != "no":
            boot_id = os.fsdecode(mirror.read("/proc/sys/kernel/random/boot_id")).strip()
            mirror.append("/dev/kmsg", self.log.take(parts.get("kmsg", b""), boot_id))
        pids = {int(match[1]) for match in _PID.finditer(parts.get("pids", b""))}
        return self.processes.take(pids - {survey.shell_pid}, need.watched, found)  # the poll does not count itself

    def server_seconds(self, survey: Survey) -> float | None:
        """CPU time of the sshd that serves the connection."""
        lines = stat_lines(self._mirror.read(survey.server_file))
        return lines[survey.parent_pid].cpu / survey.ticks if survey.parent_pid in lines else None

    def take_more(self, survey: Survey, faces: Sequence[int], reply: Reply) -> set[int]:
        """Takes command lines, programs and filesystems; returns the pids that a watch means now."""
        if "mounts" in reply.parts:
            self._mirror.put("/statvfs", _spaces(reply.parts["mounts"]))
        try:
            uptime_s = float(self._mirror.read("/proc/uptime").split()[0])
        except (IndexError, ValueError):
            uptime_s = float("inf")
        stats, files, links = (reply.parts.get(name, b"") for name in ("stats", "faces", "programs"))
        return self.processes.see_faces(faces, stats, files, links, lambda start: uptime_s - start / survey.ticks)

    def take_details(self, survey: Survey, pids: Sequence[int], reply: Reply) -> None:
        """Takes what is read of processes that are new to a watch."""
        found = files_of(reply.parts.get("files", b""))
        self.processes.take_details(pids, found)
        self._take_memory(survey, pids, found)
        for pid in pids:
            if f"/proc/{pid}/limits" in found:
                self._mirror.put(f"/proc/{pid}/limits", found[f"/proc/{pid}/limits"])
        self._take_maps(pids, reply.parts, reply.complaints)
        self._take_mappings(reply.parts)
        self.processes.take_links(reply.parts.get("programs", b""))
        self._descriptors.update(_descriptors(reply.parts.get("descriptors", b"")))

    def mounts(self) -> list[str]:
        """The local filesystems of the device."""
        try:
            return list(self._mounts.mounts())
        except (OSError, RuntimeError, ValueError):
            return []

    def cpu(self) -> tuple[int, ...] | None:
        """The device's CPU ticks by mode since its boot."""
        try:
            return parse_cpu_stat(os.fsdecode(self._mirror.read("/proc/stat"))).total
        except ValueError:
            return None

    # --- reading -------------------------------------------------------------------------------------------

    def look(self, survey: Survey, need: LookRequest, mapped: Sequence[int], now_ns: int) -> Answer:
        """The agent's probes on the mirror, and what they cannot know of a device."""
        notes = self._notes
        notes.begin(now_ns)
        self._context.shared.denied = lambda path: _denied(survey, path)
        answer = self._host.poll(now_ns)
        self.first = False
        for path in self._mappings:
            self._mirror.drop(path)
        self._mappings.clear()
        watched = self._context.shared.watched
        for pid in [pid for pid in self._maps_read if pid not in watched]:
            del self._maps_read[pid]
        for pid in {*need.mapped, *mapped} & watched.keys():
            self._maps_read[pid] = now_ns
        for pid, object_label in watched.items():
            self._tell_descriptors(pid, object_label)
        for folder, why in self.cores.unseen.items():
            notes.fault("system.core.files", object_text(folder=clean(folder)), why)
        if survey.kmsg not in ("yes", "absent"):
            text = "the kernel log cannot be read by this account (/dev/kmsg): log in as root or give it CAP_SYSLOG"
            if survey.kmsg == "busy":
                text = "the kernel log cannot be read without waiting: the device's dd has no iflag=nonblock"
            notes.fault("system.kernel.alarms", "", text)
        if self._hidden(survey):
            text = "this account sees its own processes only (/proc is mounted with hidepid)"
            notes.fault("system.processes", "", text)
        if not survey.stat:
            notes.fault("system.filesystem.usage", "", "the device has no program 'stat' that shows filesystems")
        faults = tuple(fault for each in answer.faults if (fault := self._true(survey, each)) is not None)
        hidden = self._hidden(survey)
        samples = tuple(
            each for each in answer.samples if self._seen(each) and not (hidden and each.metric == "system.processes")
        )
        return Answer(samples + tuple(notes.samples), answer.events + tuple(notes.events), faults + tuple(notes.faults))

    def _tell_descriptors(self, pid: int, object_label: str) -> None:
        if pid not in self._descriptors:
            return
        count, metric = self._descriptors[pid], "process.open_files"
        if count is None:
            self._notes.fault(metric, object_label, "descriptors cannot be counted: permission denied")
        else:
            self._notes.sample(metric, object_label, count)
            self._notes.recovered(metric, object_label)

    def _true(self, survey: Survey, fault: Fault) -> Fault | None:
        """A fault of a file that the mirror lacks, reworded: the account may not read that file of the device."""
        if fault.metric in ("process.memory.pss", "process.memory.uss"):
            denied = {self._context.shared.watched.get(pid) for pid in self._maps_denied}
            return Fault(fault.metric, fault.object, _NEED_PTRACE) if fault.object in denied else fault
        if fault.metric == "system.kernel.alarms" and survey.kmsg not in ("yes", "absent"):
            return None
        if fault.metric == "system.core.files" and not survey.stat:
            return Fault(fault.metric, "", "the device has no program 'stat' that shows files")
        if fault.metric == "system.core.files" and any(
            fault.object == object_text(folder=clean(folder)) for folder in self.cores.unseen
        ):
            return None
        return Fault(fault.metric, fault.object, fault.text.replace(self._mirror.root, ""))

    def _hidden(self, survey: Survey) -> bool:
        return not survey.root and _HIDDEN.search(self._mirror.read("/proc/self/mounts")) is not None

    def _seen(self, sample: Sample) -> bool:
        """False for a count of core files in a folder that could not be listed: missing is never zero."""
        if sample.metric != "system.core.files":
            return True
        return not any(sample.object == object_text(folder=clean(folder)) for folder in self.cores.unseen)

    # --- taking --------------------------------------------------------------------------------------------

    def _take_memory(self, survey: Survey, pids: Sequence[int], found: Mapping[str, bytes]) -> None:
        for pid in pids:
            path = f"/proc/{pid}/statm"
            data = found.get(path)
            if data is None:
                self._mirror.drop(path)
            else:
                self._mirror.put(path, _in_pages_of_here(data, _NUMBERS, survey.page))

    def _take_mappings(self, parts: Mapping[str, bytes]) -> None:
        for path, data in files_of(parts.get("mappings", b"")).items():
            pid = path.split("/")[2]
            if data.strip() and pid.isdecimal():
                self._mirror.put(MAPPINGS_OF.format(pid), data)
                self._mappings.add(MAPPINGS_OF.format(pid))

    def _take_maps(self, pids: Sequence[int], parts: Mapping[str, bytes], complaints: str) -> None:
        found = files_of(parts.get("maps", b""))
        self._maps_denied = {int(match[1]) for match in _DENIED.finditer(complaints)} | (self._maps_denied - set(pids))
        for pid in pids:
            path = f"/proc/{pid}/smaps_rollup"
            if path in found:
                self._mirror.put(path, found[path])
            else:
                self._mirror.drop(path)


def _in_pages_of_here(data: bytes, numbers: re.Pattern[bytes], page: int) -> bytes:
    """The text of a device whose pages have another size, with its numbers converted to pages of this machine."""
    here = os.sysconf("SC_PAGE_SIZE")
    return data if page == here else numbers.sub(lambda number: b"%d" % (int(number[0]) * page // here), data)


def _denied(survey: Survey, path: str) -> bool:
    """Whether a file is missing in the mirror because the account may not read it on the device."""
    return path in survey.denied or (not survey.root and _WORKING_FOLDER.fullmatch(path) is not None)


def _descriptors(text: bytes) -> dict[int, int | None]:
    reported: dict[int, int | None] = {}
    for line in text.decode("ascii", "replace").splitlines():
        pid, _, count = line.partition(" ")
        if pid.isdecimal() and len(pid) < 11 and (count == "-" or (count.isdecimal() and len(count) < 11)):
            reported[int(pid)] = None if count == "-" else int(count)
    return reported


def _spaces(text: bytes) -> bytes:
    """The lines of ``stat -f`` that are whole: block size, blocks, free blocks, inodes, free inodes, mount point."""
    kept = []
    for line in text.split(b"\n"):
        *numbers, _mount = line.split(None, 5) or [b""]
        if len(numbers) == 5 and all(each.isdigit() and len(each) <= 20 for each in numbers):
            kept.append(line)
    return b"\n".join(kept)


class CoreFolders:
    """Folders where core files come to lie, mirrored as empty files of the same name, size, time and inode.

    It knows which folders are listed, and what of them the mirror shows; ``unseen`` are those that could not be listed.
    """

    def __init__(self, mirror: Mirror, configured: Sequence[str]) -> None:
        self._mirror = mirror
        self._configured = tuple(configured)
        self._shown: dict[str, dict[str, tuple[int, int, int]]] = {}
        self.unseen: dict[str, str] = {}

    def wanted(self, watched: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """The folders to list, each with the glob of its files; ``watched`` are pids whose working folders count."""
        wanted: dict[str, str] = dict.fromkeys(self._configured, "*")
        pattern = os.fsdecode(self._mirror.read("/proc/sys/kernel/core_pattern")).rstrip("\n")
        uses_pid = self._mirror.read("/proc/sys/kernel/core_uses_pid").strip() not in (b"", b"0")
        for nest in locations_of_pattern(pattern, uses_pid=uses_pid):
            if nest.folder is not None:
                wanted.setdefault(nest.folder, "*")
                continue
            begin = shlex.quote(pattern.rpartition("/")[2].partition("%")[0])
            for pid in watched:
                try:
                    cwd = os.readlink(self._mirror.root + f"/proc/{pid}/cwd")
                except OSError:
                    continue
                wanted.setdefault(cwd, f"{begin if begin != chr(39) * 2 else ''}*")
        for folder in CRASH_FOLDERS:
            wanted.setdefault(folder, "* */*")
        return tuple(list(wanted.items())[:_MAX_FOLDERS])

    def take(self, folders: Sequence[tuple[str, str]], parts: Mapping[str, bytes]) -> None:
        """Takes the listings of a look."""
        for index, (folder, _) in enumerate(folders):
            lines = os.fsdecode(parts.get(f"cores {index}", b"")).splitlines()
            word = lines[0] if lines else "denied"
            if word == "there" and "many" in lines[1:2]:
                word = "many"
            if word in ("there", "absent"):
                self.unseen.pop(folder, None)
            else:
                why = "this account may not list it" if word == "denied" else "it holds more than 500 files"
                self.unseen[folder] = f"{folder} cannot be listed: {why}"
            if word == "absent":
                self._mirror.drop_folder(folder)
                self._shown.pop(folder, None)
            elif word == "there":
                self._mirror.folder(folder)
                self._show(folder, _listed_files(lines[1:]))

    def _show(self, folder: str, files: Mapping[str, tuple[int, int, int]]) -> None:
        shown = self._shown.setdefault(folder, {})
        for name in [each for each in shown if each not in files or files[each] != shown[each]]:
            if name not in files or files[name][2] != shown[name][2]:
                self._mirror.unlink(f"{folder}/{name}")  # another inode: another file, here as well
            del shown[name]
        for name, (size, mtime_s, inode) in files.items():
            if name not in shown:
                self._mirror.sparse(f"{folder}/{name}", size, mtime_s)
                shown[name] = size, mtime_s, inode


class KernelLog:
    """The kernel log: records that mean trouble are handed on to the agent's probe, each once.

    Remembers the last record that was seen, so that a line that was cut loses none and tells none twice."""

    def __init__(self) -> None:
        self._last = -1
        self._boot = ""
        self.begun = False

    def take(self, text: bytes, boot_id: str) -> bytes:
        """The new records that mean trouble, one per line; none at the first poll: those are from before."""
        first, self.begun = not self.begun, True
        if boot_id != self._boot:
            if self._boot:
                first = False
            self._boot, self._last = boot_id, -1
        alarms = []
        for raw in text.decode("utf-8", "surrogateescape").split("\n"):
            record = parse_record(raw)
            if record is None or record.seq <= self._last:
                continue
            self._last = record.seq
            if not first and not record.priority >> 3 and alarm_of(record.text) is not None:
                alarms.append(raw)
        return "".join(f"{line}\n" for line in alarms).encode("utf-8", "surrogateescape")


def _listed_files(lines: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    files = {}
    for line in lines:
        match = _LISTED.fullmatch(line)
        if match is not None and int(match[1], 16) & _KIND == _REGULAR:
            files[match[5]] = int(match[2]), int(match[3]), int(match[4])
    return files
