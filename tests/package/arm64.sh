#!/bin/bash
# `make static` by a cross compiler for arm64, in a bare Debian 12, and what it built under qemu's user mode: it serves.
# Prints TAP. Needs root and mmdebstrap.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/package/tap.sh
if [ "$(id -u)" != 0 ] || [ "$(uname -m)" != x86_64 ]; then
    echo "# skipped: needs root on x86-64"
    exit 0
fi

scratch=$(mktemp -d /tmp/toolgate-arm64-XXXXXX)
root=$scratch/root
finish() {
    umount -l "$root/proc" "$root/dev" 2> /dev/null
    rm -rf --one-file-system "$scratch"
}
trap finish EXIT

inside() { chroot "$root" sh -c "cd /src && $1"; }

close_descriptors
libraries=$(sed -n '/^BUILD_PACKAGES :=/,/[^\\]$/p; /^STATIC_PACKAGES :=/p' Makefile | tr ' ' '\n' | sed -n 's/^lib.*-dev$/&:arm64/p' | paste -sd,)
mmdebstrap --quiet --aptopt='Acquire::Retries "5"' --variant=minbase --architectures=amd64,arm64 \
    --include="make,pkg-config,crossbuild-essential-arm64,qemu-user-static,$libraries" bookworm "$root" 2> "$scratch/log" ||
    { echo "not ok - a bare Debian begins"; sed 's/^/#   /' "$scratch/log" | tail -n 10; exit 1; }
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev"
put_source "$root"

check "make static builds for arm64" inside 'PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig \
    make -s -j2 static-now DEPS=no CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar'
check "it is a program for arm64" inside 'aarch64-linux-gnu-readelf -h build/static/toolgate | grep -q AArch64'
check "its policies pass their examples" inside \
    'qemu-aarch64-static build/static/toolgate test policies | tail -n 1 | grep -q "[0-9] passed, 0 failed"'
cat > "$root/src/try.sh" <<'TRY'
set -eu
mkdir tried
cat > tried/t.lua <<POLICY
-- t: says its number. Read only.
return tool "t" { description = "T.", effects = "read", schema = params { n = int "N" }, run = function(args) return { n = args.n } end }
POLICY
qemu-aarch64-static build/static/toolgate serve --socket /tmp/t.sock --policies tried > log 2>&1 & gate=$!
trap 'kill $gate' EXIT
until qemu-aarch64-static build/static/toolgate status --socket /tmp/t.sock > /dev/null 2>&1; do kill -0 $gate; done
qemu-aarch64-static build/static/toolgate call --socket /tmp/t.sock t '{"n":"3"}' || cat log
TRY
check "its daemon answers a call" inside 'timeout 60 sh try.sh > said 2>&1; cat said; grep -q "{\"n\":3}" said'
