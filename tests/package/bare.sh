#!/bin/bash
# README's first commands in a bare Debian 12 and 13, which have nothing but make: it installs what it lacks, builds, and
# what it built reads the sample. Prints TAP. Needs root and mmdebstrap.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/package/tap.sh
if [ "$(id -u)" != 0 ]; then
    echo "# skipped: a bare Debian needs root"
    exit 0
fi

scratch=$(mktemp -d /tmp/toolgate-bare-XXXXXX)
finish() {
    for root in "$scratch"/*/; do umount "$root/proc" "$root/dev" 2>/dev/null; done
    rm -rf --one-file-system "$scratch"
}
trap finish EXIT

close_descriptors

# bare SUITE: a root with make, apt's settings of this machine, and the source as git has it, with its changes.
bare() {
    local root=$scratch/$1
    mmdebstrap --quiet --aptopt='Acquire::Retries "5"' --variant=minbase --include=make,ca-certificates "$1" "$root" || return 1
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    cp /etc/resolv.conf "$root/etc/" 2>/dev/null
    put_source "$root"
    mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev"
}

# inside SUITE COMMAND
inside() { chroot "$scratch/$1" sh -c "cd /src && $2"; }

# An assistant that starts what its file names, and makes one call three times.
guarded='cd && set -- $(sed -n "s/.*\"args\": *\[\(.*\)\].*/\1/p" .mcp.json | tr -d "\",") && [ $# -gt 0 ] &&
    { printf "%s\n" "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bare\",\"version\":\"1\"}}}"
      for id in 1 2 3; do
          printf "%s\n" "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"tools/call\",\"params\":{\"name\":\"say\",\"arguments\":{\"text\":\"x\"}}}"
      done; } | toolgate "$@" > heard && cat heard && grep -q "made 3 times at once" heard'

for suite in bookworm trixie; do
    if ! out=$(bare "$suite" 2>&1); then
        echo "not ok - a bare $suite begins"
        printf '%s\n' "$out" | tail -n 10 | sed 's/^/#   /'
        continue
    fi
    check "a bare $suite: make with DEPS=no names the packages" \
        inside "$suite" 'make DEPS=no 2>&1 | grep -q "^make needs these Debian packages, which are missing: gcc "'
    check "a bare $suite: make builds" inside "$suite" 'make'
    check "a bare $suite: make install installs" inside "$suite" 'make install'
    check "a bare $suite: toolgate replay reads the sample" inside "$suite" \
        'toolgate replay docs/samples/run.json --tools docs/samples/tools.json | grep -q "^14 calls in 1 session"'
    cp tests/package/say_server.sh "$scratch/$suite/root/"
    printf '{\n  "mcpServers": { "say": { "command": "sh", "args": ["/root/say_server.sh"] } } // mine\n}\n' > "$scratch/$suite/root/.mcp.json"
    cp "$scratch/$suite/root/.mcp.json" "$scratch/$suite/root/before.json"
    check "a bare $suite: toolgate attach puts toolgate in front of an assistant's server" \
        inside "$suite" 'cd && toolgate attach .mcp.json && grep -q connect .mcp.json && ! grep -q say_server .mcp.json'
    check "a bare $suite: what the file names now starts the daemon, and tells the model of its third same call" \
        inside "$suite" "$guarded"
    check "a bare $suite: toolgate attach --undo gives the file back, byte for byte" \
        inside "$suite" 'cd && toolgate attach --undo .mcp.json && cmp .mcp.json before.json && toolgate stop'
done
