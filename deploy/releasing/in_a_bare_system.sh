#!/bin/sh
# What deploy/release --prove does in a bare Debian, as root and without a network: each way of docs/install.md, and
# after each a short run of that installation, judged and reported. The release lies in /release. Arguments: the ways.
set -eu
cd /release
say() { printf '\n== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

# verdict CODE FILE: the code of a command that judges is that of pass, fail or inconclusive; FILE has what it said
verdict() { case $1 in 0 | 1 | 3) ;; *) cat "$2"; fail "it ended with code $1" ;; esac; }

# used AS COMMAND: a run of 12 s, judged again and reported, by a user
used() {
  as=$1 soakwatch=$2
  folder=$(mktemp -d) && chown "$as" "$folder" && cd "$folder"
  begin="runuser -u $as -- env HOME=$folder"
  $begin "$soakwatch" --version
  sleep 300 & sleeper=$!
  for words in "run --process sleep --duration 12s" "judge last" "report last --html report.html"; do
    code=0
    $begin "$soakwatch" $words >said 2>&1 </dev/null || code=$?
    verdict $code said
    printf 'soakwatch %s: code %s: %s\n' "$words" "$code" "$(grep -v '^ *$' said | head -n 1)"
  done
  kill $sleeper
  grep -q '<html' report.html || fail "no report"
  cd /release
}

# cpu: the seconds of CPU of all that this shell has waited for
cpu() { awk '{ print int(($16 + $17) / '"$(getconf CLK_TCK)"') }' "/proc/$$/stat"; }

say "no network"
if python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80), 2)' 2>/dev/null; then fail "there is one"; fi

by_wheelhouse() {
  say "wheelhouse"
  begun=$(date +%s) busy=$(cpu)
  python3 -m venv /opt/soakwatch
  /opt/soakwatch/bin/pip install -q --no-index --find-links "$wheelhouse" soakwatch
  echo "installed in $(($(date +%s) - begun)) s, of them $(($(cpu) - busy)) s of a core;" \
    "$(du -sm /opt/soakwatch | cut -f 1) MB with pip and compiled files"
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

# commands SECTION: the first block of shell in a section of docs/install.md, for this Debian and a short run
commands() {
  awk -v head="## $1" '$0 == head { here = 1; next } /^## / { here = 0 }
    here && /^```/ { if (inside) exit; inside = 1; next } here && inside' install.md |
    sed "s/cp313-linux_x86_64/$tag/; s/+deb13_amd64/$debian/; s/--process [a-z]* --duration 30m/--process sleep --duration 12s/"
}

# The page itself, typed by root into a shell; pip and uv would ask an index for the dependencies and ask the wheelhouse here.
by_page() {
  tag=$(echo soakwatch-*-wheelhouse-*.tar.gz | sed 's/.*wheelhouse-//; s/.tar.gz//')
  debian=$(echo ./soakwatch_*.deb | sed 's/.*\(+deb[0-9]*_[a-z0-9]*\).deb/\1/')
  sleep 900 & sleeper=$!
  for section in "pipx or uv" "Debian package" "Wheelhouse, without a network"; do
    say "docs/install.md: $section"
    commands "$section" >typed
    cat typed
    grep -q 'soakwatch run' typed || fail "the page has no such commands"
    code=0
    PATH=$HOME/.local/bin:$PATH PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheelhouse sh -eu typed >said 2>&1 </dev/null || code=$?
    verdict $code said
    case $section in
      pipx*) pipx uninstall soakwatch >/dev/null 2>&1 ;;
      Debian*) apt-get purge -y -qq soakwatch >/dev/null 2>&1 ;;
    esac
  done
  kill $sleeper
}

# older_package: the package of an earlier release, where one was given; else this one by a lower number, with files of
# another time
older_package() {
  [ ! -e older.deb ] || return 0
  dpkg-deb -R ./soakwatch_*.deb older
  sed -i 's/^Version: .*/Version: 0.0.1/' older/DEBIAN/control \
    older/usr/lib/soakwatch/lib/python3.*/site-packages/soakwatch-[0-9]*.dist-info/METADATA
  SOURCE_DATE_EPOCH=1600000000 dpkg-deb -Znone --build older older.deb >/dev/null
  rm -r older
}

# A record of the older package, and a run that goes on while it is upgraded; both are read by the newer one and outlive it.
by_upgrade() {
  say "Debian package, upgraded beside a run"
  older_package
  apt-get install -y -qq ./older.deb >said 2>&1 || { cat said; fail "apt-get install of the older one"; }
  old=$(soakwatch --version)
  cd /var/lib/soakwatch
  ours="runuser -u soakwatch -- env HOME=/var/lib/soakwatch soakwatch"
  tail -f /dev/null & watched=$!
  $ours run --process tail --duration 12s --into old >/release/said 2>&1 </dev/null || verdict $? /release/said
  $ours run --process tail --duration 1h --into beside >/release/beside 2>&1 </dev/null & run=$!
  waited=0
  until grep -q 'polls [1-9]' /release/beside; do
    waited=$((waited + 1))
    [ $waited -lt 120 ] || { cat /release/beside; fail "the run polls nothing"; }
    sleep 1
  done
  apt-get install -y -qq /release/soakwatch_*.deb >/release/said 2>&1 || { cat /release/said; fail "the upgrade"; }
  $ours stop beside >/release/said 2>&1 || { cat /release/said; fail "soakwatch stop"; }
  new=$(soakwatch --version)
  [ "$old" != "$new" ] || fail "still $old"
  code=0
  wait $run || code=$?
  verdict $code /release/beside
  kill $watched
  grep 'the new version judges it' /release/beside || { cat /release/beside; fail "the older one made the end"; }
  for record in old beside; do
    $ours verify $record >/release/said 2>&1 || { cat /release/said; fail "verify $record"; }
    $ours judge $record >/release/said 2>&1 || verdict $? /release/said
    printf '%s, then %s: %s\n' "$old" "$new" "$(grep -m 1 'PASS\|FAIL\|INCONCLUSIVE' /release/said)"
    [ -s $record/report.html ] || fail "$record has no report"
  done
  apt-get purge -y -qq soakwatch >/release/said 2>&1 || { cat /release/said; fail "purge"; }
  for record in old beside; do [ -s $record/record.sqlite ] || fail "purge removed the record $record"; done
  cd /release
}

say "the wheelhouse is unpacked"
tar -xf soakwatch-*-wheelhouse-*.tar.gz
wheelhouse=$(echo /release/soakwatch-*-wheelhouse-*/)
everything='soakwatch[loads,pollers,executors,sinks,export,notify]'

for way in "$@"; do "by_$way"; done
say "all ways work"
