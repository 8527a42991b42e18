#!/bin/sh
# What deploy/release --prove does in a bare Debian, as root and without a network: each way of docs/install.md, and
# after each a short run of that installation, judged and reported. The release lies in /release. Arguments: the ways.
set -eu
cd /release
say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

# used AS COMMAND: a run of 12 s, judged again and reported, by a user
used() {
  as=$1 soakwatch=$2
  folder=$(mktemp -d) && chown "$as" "$folder" && cd "$folder"
  begin="runuser -u $as -- env HOME=$folder"
  $begin "$soakwatch" --version
  sleep 300 & sleeper=$!
  for words in "run --process sleep --duration 12s" "judge last" "report last --html report.html"; do
    code=0
    # Ends with the code of a verdict: pass, fail, inconclusive.
    $begin "$soakwatch" $words >said 2>&1 </dev/null || code=$?
    case $code in 0 | 1 | 3) ;; *) cat said; fail "soakwatch $words ended with code $code" ;; esac
    printf 'soakwatch %s: code %s: %s\n' "$words" "$code" "$(grep -v '^ *$' said | head -n 1)"
  done
  kill $sleeper
  grep -q '<html' report.html || fail "no report"
  cd /release
}

say "no network"
if python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80), 2)' 2>/dev/null; then fail "there is one"; fi

by_wheelhouse() {
  say "wheelhouse"
  begun=$(date +%s)
  python3 -m venv /opt/soakwatch
  /opt/soakwatch/bin/pip install -q --no-index --find-links "$wheelhouse" soakwatch
  echo "installed in $(($(date +%s) - begun)) s, $(du -sm /opt/soakwatch | cut -f 1) MB with pip and compiled files"
  used root /opt/soakwatch/bin/soakwatch
  /opt/soakwatch/bin/pip install -q --no-index --find-links "$wheelhouse" "$everything"
  /opt/soakwatch/bin/soakwatch loads | grep -q trex || fail "the plug-in trex is not there"
  /opt/soakwatch/bin/pip check
}

by_pipx() {
  say "wheel, by pipx"
  PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheelhouse PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/usr/local/bin pipx install ./soakwatch-*.whl
  used root /usr/local/bin/soakwatch
  rm -r /opt/pipx /usr/local/bin/soakwatch*
}

by_uv() {
  say "wheel, by uv"
  UV_TOOL_BIN_DIR=/usr/local/bin UV_TOOL_DIR=/opt/uv ./uv tool install -q --no-index --find-links "$wheelhouse" \
    --python /usr/bin/python3 ./soakwatch-*.whl
  echo "$(du -sm /opt/uv | cut -f 1) MB"
  used root /usr/local/bin/soakwatch
  rm -r /opt/uv /usr/local/bin/soakwatch*
}

by_debian() {
  say "Debian package"
  apt-get install -y -qq ./soakwatch_*.deb >said 2>&1 || { cat said; fail "apt-get install"; }
  echo "$(du -sm /usr/lib/soakwatch | cut -f 1) MB in /usr/lib/soakwatch with compiled files"
  used soakwatch /usr/bin/soakwatch
  soakwatch loads | grep -q trex || fail "the plug-in trex is not there"
  soakwatch-agent --help >/dev/null
  [ -s /usr/share/man/man1/soakwatch-run.1 ] || fail "there are no manual pages"
  [ -s /usr/share/bash-completion/completions/soakwatch ] || fail "TAB completes nothing"
  stat -c '%U:%G %a %n' /var/lib/soakwatch /etc/soakwatch
  ls /usr/lib/systemd/system/soakwatch* 2>/dev/null || echo "no units"
  runuser -u soakwatch -- touch /var/lib/soakwatch/record
  apt-get install -y -qq --reinstall ./soakwatch_*.deb >said 2>&1 || { cat said; fail "installed again"; }
  apt-get purge -y -qq soakwatch >said 2>&1 || { cat said; fail "purge"; }
  grep 'soakwatch: ' said || { cat said; fail "purge does not say that the records are kept"; }
  [ -e /var/lib/soakwatch/record ] || fail "purge removed the records"
  [ ! -e /usr/lib/soakwatch ] || fail "purge left $(find /usr/lib/soakwatch | head -n 3)"
  [ ! -e /etc/soakwatch ] || fail "purge left /etc/soakwatch"
}

say "the wheelhouse is unpacked"
tar -xf soakwatch-*-wheelhouse-*.tar.gz
wheelhouse=$(echo /release/soakwatch-*-wheelhouse-*/)
everything='soakwatch[loads,pollers,executors,sinks,export,notify]'

for way in "$@"; do "by_$way"; done
say "all ways work"
