#!/bin/bash
# The Debian package in a clean Debian 12 under its own systemd: install, call, upgrade with calls in flight, remove, purge.
# Prints TAP. Needs root, and the packages of `make conformance`. BUILD: the folder with the package that `make deb` built.
#
# The mirror is that of this machine's apt. systemd runs as PID 1 of new namespaces, so that it neither sees nor changes
# this machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/package/tap.sh
build=$(realpath "${BUILD:-build}")
if [ "$(id -u)" != 0 ]; then
    echo "# skipped: the package's test needs root"
    exit 0
fi

scratch=$(mktemp -d /tmp/toolgate-package-XXXXXX)
root=$scratch/root
pid=
shell=

finish() {
    [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null # PID 1 of its namespace: everything in there ends
    [ -n "$shell" ] && wait "$shell" 2>/dev/null
    rm -rf --one-file-system "$scratch"
}
trap finish EXIT

inside() { nsenter -t "$pid" -m -p -u -i -C -r -w env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root "$@"; }
sh_inside() { inside sh -c "$1"; }

# eventually COMMAND...: within 30 s.
eventually() {
    local until=$((SECONDS + 30))
    until "$@"; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.1
    done
}

# ---- the package, and one of a higher version with a changed configuration file ----
make -s --no-print-directory BUILD="$build" deb-now > "$scratch/log" 2>&1 ||
    { echo "not ok - make deb builds the package"; sed 's/^/#   /' "$scratch/log" | tail -n 20; exit 1; }
deb=$(ls "$build"/deb/toolgate_*.deb)
version=$(dpkg-deb -f "$deb" Version)
# The same source in a folder of another name, without git.
mkdir "$scratch/elsewhere"
tar -xzf "$build/toolgate-${version%-*}.tar.gz" -C "$scratch/elsewhere"
make -s --no-print-directory -C "$scratch/elsewhere/toolgate-${version%-*}" BUILD=build deb-now > "$scratch/log" 2>&1
check "two builds in different folders give the same bytes" \
    cmp "$deb" "$scratch/elsewhere/toolgate-${version%-*}/build/deb/${deb##*/}"
for page in man/*.[15]; do
    check "$page has no warnings of man and mandoc" sh -c "! { man --warnings -l $page 2>&1 > /dev/null; mandoc -T lint -W warning $page | grep -v STYLE; } | grep ."
done
check "lintian has no errors or warnings" lintian --allow-root --fail-on error,warning "$build"/deb/toolgate_*.changes
dpkg-deb -R "$deb" "$scratch/next"
sed -i "s/^Version: .*/Version: $version+next/" "$scratch/next/DEBIAN/control"
echo '-- A later version.' >> "$scratch/next/etc/toolgate/toolgate.lua"
next=$scratch/toolgate_next.deb
dpkg-deb --root-owner-group -b "$scratch/next" "$next" > /dev/null

# ---- a clean Debian ----
close_descriptors
sources=$(ls /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
mmdebstrap --quiet --aptopt='Acquire::Retries "5"' --variant=minbase \
    --include=systemd,systemd-sysv,dbus,procps bookworm "$root" "$sources" 2> "$scratch/log" ||
    { echo "not ok - a clean Debian can be made"; sed 's/^/#   /' "$scratch/log" | tail -n 20; exit 1; }
cp "$deb" "$root/root/first.deb"
cp "$next" "$root/root/next.deb"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null

unshare -m -p -u -i -C --fork --mount-proc sh -c "
    mount --bind $root $root && mount -t proc proc $root/proc && mount -t sysfs -o ro sysfs $root/sys &&
    mount -t tmpfs tmpfs $root/run && mount -t cgroup2 cgroup2 $root/sys/fs/cgroup &&
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot $root /lib/systemd/systemd --system" \
    < /dev/null > "$scratch/systemd.log" 2>&1 &
shell=$!
eventually sh -c "pgrep -P $shell > $scratch/pid"
pid=$(head -n 1 "$scratch/pid")
is_booted() { sh_inside 'systemctl is-system-running 2>/dev/null | grep -qE "running|degraded"'; }
check "systemd runs as PID 1" eventually is_booted

# ---- install ----
check "apt installs the package with its dependencies" sh_inside 'apt-get -qq update && apt-get -qq -y install /root/first.deb'
check "toolgate --version prints its version" test "$(inside toolgate --version)" = "toolgate ${version%-*}"
check "sysusers made the user, without a shell" sh_inside 'getent passwd toolgate | grep -q :/usr/sbin/nologin$'
check "the configuration file has every key as a comment" sh_inside 'grep -q "^ *--socket = " /etc/toolgate/toolgate.lua'
check "the socket and the service are enabled and run" \
    sh_inside 'systemctl is-enabled toolgate.socket toolgate.service && systemctl is-active toolgate.socket toolgate.service'
check "toolgate status finds the daemon without an option" inside toolgate status
check "the state folder is the daemon's" test "$(inside stat -c %U:%a /var/lib/toolgate)" = toolgate:750
check "the manual pages are there" \
    sh_inside 'ls /usr/share/man/man1/toolgate.1.gz /usr/share/man/man5/toolgate.lua.5.gz /usr/share/man/man5/toolgate-policy.5.gz'

# ---- the spawner: a server in a sandbox, as a user of its own, while the daemon's unit allows no processes ----
check "the spawner is installed, and off" \
    sh_inside 'getent passwd toolgate-spawner && ! systemctl is-enabled -q toolgate-spawner.socket && ! systemctl is-active -q toolgate-spawner.socket'
cp tests/support/reaching_server.py "$root/opt/server.py"
chmod 644 "$root/opt/server.py"
check "apt installs the server's interpreter" sh_inside 'apt-get -qq -y install --no-install-recommends python3 && useradd mcp-box'
inside tee /etc/toolgate/spawner.lua > /dev/null <<'SPAWNER'
return {
  allow = { { users = { "toolgate" } } },
  upstreams = { box = { command = "/usr/bin/python3", args = { "/opt/server.py" }, user = "mcp-box", sandbox = { read = { "/opt" } } } },
}
SPAWNER
check "the spawner's configuration is good" inside toolgate spawner --check
sh_inside 'sed -i "s|^  --spawner = |  spawner = |; s|^  upstreams = {|  upstreams = { box = { spawned = true },|" /etc/toolgate/toolgate.lua'
check "its socket is enabled" inside systemctl enable -q --now toolgate-spawner.socket
check "the daemon takes the configuration" inside toolgate reload
check "the server answers" eventually sh_inside 'test "$(toolgate call reach "{\"how\": \"environment\", \"what\": \"PATH\"}")" = ok'
check "it runs as its own user" sh_inside 'pgrep -u mcp-box -f /opt/server.py'
check "it reaches what its sandbox names, and nothing else" sh_inside '
    test "$(toolgate call reach "{\"how\": \"read\", \"what\": \"/opt/server.py\"}")" = ok &&
    toolgate call reach "{\"how\": \"read\", \"what\": \"/var/log/dpkg.log\"}" | grep -q EACCES &&
    toolgate call reach "{\"how\": \"unix\", \"what\": \"/run/toolgate/toolgate.sock\"}" | grep -q EACCES'
check "it has no capability" sh_inside 'grep -q "^CapEff:.0000000000000000" /proc/$(pgrep -o -u mcp-box -f /opt/server.py)/status'
check "another user may not ask the spawner" \
    sh_inside '! setpriv --reuid nobody --regid nogroup --clear-groups python3 -c "import socket; socket.socket(socket.AF_UNIX).connect(\"/run/toolgate/spawner.sock\")"'
check "the spawner ends with its servers" sh_inside 'systemctl stop toolgate-spawner.service && ! pgrep -u mcp-box'
check "and starts again when the daemon asks" eventually sh_inside 'pgrep -u mcp-box -f /opt/server.py'
sh_inside 'sed -i "s|^  spawner = |  --spawner = |; s|^  upstreams = { box = { spawned = true },|  upstreams = {|" /etc/toolgate/toolgate.lua'
check "without it in the configuration its server ends" sh_inside 'toolgate reload && systemctl disable -q --now toolgate-spawner.socket'
server_ended() { sh_inside '! pgrep -u mcp-box'; }
check "and nothing of it is left" eventually server_ended
inside rm /etc/toolgate/spawner.lua

# ---- a policy, a user, a call ----
inside tee /etc/toolgate/policies/pause.lua > /dev/null <<'POLICY'
-- pause: waits. Read only.
return tool "pause" {
  description = "Wait, then return the text.",
  effects = "read",
  retry = { same_call = 1000 },
  schema = params { text = str "What to return", seconds = optional(num { min = 0, max = 4, "How long" }) },
  exec = { "sh", "-c", "sleep \"$1\"; printf '%s' \"$2\"", "sh", "{seconds}", "{text}", output = "text" },
}
POLICY
sh_inside 'mkdir -p /etc/systemd/system/toolgate.service.d && printf "[Service]\nTasksMax=256\n" \
    > /etc/systemd/system/toolgate.service.d/commands.conf && systemctl daemon-reload && systemctl restart toolgate'
check "the configuration and the policy are valid" \
    sh_inside 'cd /etc/toolgate && toolgate serve -c /etc/toolgate/toolgate.lua --check'
sh_inside 'useradd agent && usermod -aG toolgate agent && useradd stranger'
call() { inside setpriv --reuid "$1" --regid "$1" --init-groups toolgate call pause "$2"; }
check "a member of the group calls a tool" test "$(call agent '{"text": "here", "seconds": 0}')" = here
refused() { ! call stranger '{"text": "here", "seconds": 0}'; }
check "another user may not connect" refused
check "systemctl reload waits for the daemon" inside systemctl reload toolgate
check "the decision log has the call" eventually sh_inside 'grep -q "\"tool\":\"pause\"" /var/lib/toolgate/decisions.ndjson'
check "another user does not read the decision log" sh_inside '! setpriv --reuid agent --clear-groups cat /var/lib/toolgate/decisions.ndjson'

# ---- an upgrade with calls in flight ----
sh_inside "sed -i 's/^return {/-- Mine.\nreturn {/' /etc/toolgate/toolgate.lua"
before=$(inside systemctl show -p MainPID --value toolgate)
sh_inside "
    for i in 1 2 3 4 5 6 7 8; do
        (toolgate call pause '{\"text\": \"flight-'\$i'\", \"seconds\": 3}' > /root/flight.\$i 2>&1) &
    done
    (while [ ! -e /root/upgraded ]; do
        i=\$((i + 1))
        toolgate call pause '{\"text\": \"on '\$i'\", \"seconds\": 0}' >> /root/during 2>> /root/lost
    done) &
    wait" &
calls=$!
in_flight() { [ "$(sh_inside 'pgrep -c -f "^sleep 3"')" = 8 ]; }
check "eight calls are in flight" eventually in_flight
check "apt upgrades the package" sh_inside 'apt-get -qq -y -o Dpkg::Options::=--force-confold install /root/next.deb'
inside touch /root/upgraded
wait "$calls"
check "a new daemon runs" test "$(inside systemctl show -p MainPID --value toolgate)" != "$before"
for i in 1 2 3 4 5 6 7 8; do flights="${flights:-}$(inside cat /root/flight.$i) "; done
check "every call in flight got its result" test "${flights# }" = "$(printf 'flight-%s ' 1 2 3 4 5 6 7 8)"
check "calls go on during the upgrade, and none is lost ($(sh_inside 'grep -c on /root/during') got their result)" \
    sh_inside 'cat /root/lost; [ ! -s /root/lost ] && ! grep -vqE "^on [0-9]+$" /root/during && grep -q on /root/during'
check "the operator's change of the configuration stays" sh_inside 'grep -q "^-- Mine.$" /etc/toolgate/toolgate.lua'
check "the new version's configuration lies beside it" sh_inside 'grep -q "^-- A later version.$" /etc/toolgate/toolgate.lua.dpkg-dist'

# ---- remove and purge ----
check "apt removes the package" sh_inside 'apt-get -qq -y remove toolgate'
check "the daemon has ended and its socket is gone" sh_inside '! pgrep -x toolgate && [ ! -e /run/toolgate/toolgate.sock ]'
check "the configuration stays" inside test -e /etc/toolgate/toolgate.lua
check "apt purges the package" sh_inside 'apt-get -qq -y purge toolgate'
check "the operator's policy stays" inside test -e /etc/toolgate/policies/pause.lua
sh_inside 'rm -r /etc/systemd/system/toolgate.service.d /etc/toolgate/policies/pause.lua'
sh_inside 'rmdir -p --ignore-fail-on-non-empty /etc/toolgate/policies'
left=$(sh_inside 'find / -xdev -path /var/lib/dpkg -prune -o -path /var/log -prune -o -iname "*toolgate*" -print; ls -d /run/toolgate 2>/dev/null;
                  find / -xdev -nouser -print -o -user toolgate -print')
check "nothing else is left: ${left:-nothing}" test -z "$left"
