"""What is done on a host to put the agent there: small programs for its Python, sent over SSH. They stand alone."""

EXAMINE = r"""
import json, os, platform, shutil, subprocess, sys, hashlib
folder = os.path.join(os.path.expanduser("~"), sys.argv[1])
def works(*command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=15).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
os.environ.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.geteuid())
try:
    with open(os.path.join(folder, "agent.pyz"), "rb") as data:
        digest = hashlib.sha256(data.read()).hexdigest()
except OSError:
    digest = ""
print(json.dumps({
    "python": sys.executable, "version": platform.python_version(), "machine": platform.machine(),
    "libc": platform.libc_ver()[0] or "musl", "folder": folder, "digest": digest,
    "systemd": works("systemctl", "--user", "show-environment"), "crontab": shutil.which("crontab") is not None,
}))
"""

PUT = r"""
import hashlib, os, sys
folder, digest = sys.argv[1], sys.argv[2]
os.umask(0o077)
data = sys.stdin.buffer.read()
if hashlib.sha256(data).hexdigest() != digest:
    sys.exit("what arrived is not what was sent")
os.makedirs(folder, exist_ok=True)
ours = ("lock", "keeper.lock", "socket", "log", "clock.json", "spool.json", "settings.json")
foreign = [each for each in os.listdir(folder) if each not in ours and not each.endswith((".seg", ".new"))]
if foreign and not os.path.exists(os.path.join(folder, "agent.pyz")):
    sys.exit("the folder %s holds files that are not an agent's: name a new one with --dir" % folder)
try:
    os.chmod(folder, 0o700)
except OSError as error:
    sys.exit("the folder %s cannot be closed to others (%s): name a new one with --dir" % (folder, error.strerror))
def put(name, content, mode):
    fresh = os.path.join(folder, "." + name + ".new")
    with open(fresh, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(fresh, mode)
    os.replace(fresh, os.path.join(folder, name))
put("agent.pyz", data, 0o600)
quote = lambda text: "'" + text.replace("'", "'\\''") + "'"
line = "#!/bin/sh\nexec %s -I %s \"$@\"\n" % (quote(sys.executable), quote(os.path.join(folder, "agent.pyz")))
put("agent", line.encode(), 0o700)
"""

CLOSE = r"""
import os, sys
try:
    os.chmod(sys.argv[1], 0o700)
except OSError as error:
    sys.exit("the folder %s cannot be closed to others (%s)" % (sys.argv[1], error.strerror))
"""

SERVICE = r"""
import os, subprocess, sys
folder, name = sys.argv[1], sys.argv[2]
os.environ.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.geteuid())
place = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "systemd/user")
os.makedirs(place, exist_ok=True)
escaped = folder.replace("%", "%%").replace('"', '\\"')
with open(os.path.join(place, name + ".service"), "w") as unit:
    unit.write('[Unit]\nDescription=Soakwatch agent\nStartLimitIntervalSec=0\n\n[Service]\n'
               'ExecStart="%s/agent" run --dir "%s"\nRestart=always\nRestartSec=1\n\n'
               '[Install]\nWantedBy=default.target\n' % (escaped, escaped))
def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=30).returncode == 0
run("systemctl", "--user", "daemon-reload")
if not run("systemctl", "--user", "enable", "--now", name):
    sys.exit("systemctl --user enable --now %s failed" % name)
print("linger" if run("loginctl", "enable-linger") else "no linger")
"""

CRON = r"""
import os, shlex, subprocess, sys
folder = sys.argv[1]
mark = "# soakwatch-agent " + folder
agent = shlex.quote(folder + "/agent")
line = "@reboot %s run --keep --detach --dir %s %s" % (agent, shlex.quote(folder), mark)
old = subprocess.run(["crontab", "-l"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
old = old.decode("utf-8", "replace")
lines = [each for each in old.splitlines() if not each.endswith(mark)]
if sys.argv[2] == "add":
    lines.append(line.replace("%", "\\%"))
if lines != old.splitlines():
    subprocess.run(["crontab", "-"], input=("\n".join(lines) + "\n").encode(), check=True)
"""

REMOVE = r"""
import os, shutil, subprocess, sys
folder, name = sys.argv[1], sys.argv[2]
os.environ.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.geteuid())
place = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "systemd/user")
unit = os.path.join(place, name + ".service")
if os.path.exists(unit):
    subprocess.run(["systemctl", "--user", "disable", "--now", name], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.unlink(unit)
if not os.path.exists(os.path.join(folder, "agent.pyz")):
    sys.exit("there is no agent in " + folder)
ours = ("agent", "agent.pyz", "lock", "keeper.lock", "socket", "log", "lib", "clock.json", "spool.json",
        "settings.json", "token", "cert.pem", "key.pem")
for each in os.listdir(folder):
    path = os.path.join(folder, each)
    if each == "lib":
        for part in os.listdir(path):
            if part.startswith("psutil-"):
                shutil.rmtree(os.path.join(path, part))
        try:
            os.rmdir(path)
        except OSError:
            pass
    elif each in ours or each.endswith((".seg", ".new")):
        os.unlink(path)
try:
    os.rmdir(folder)
except OSError:
    print("kept")
"""
