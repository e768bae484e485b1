#!/bin/bash
# The program alone, in a wheel and in an npm package: built, and used where nothing else of it is. Prints TAP. The wheel is
# installed in a bare Debian without libcurl, whose carried copy then fetches. Needs root, mmdebstrap, npm. BUILD: a folder.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/package/tap.sh
build=$(realpath "${BUILD:-build}")
if [ "$(id -u)" != 0 ]; then
    echo "# skipped: a bare Debian needs root"
    exit 0
fi

scratch=$(mktemp -d /tmp/toolgate-binary-XXXXXX)
root=$scratch/root
finish() {
    umount -l "$root/proc" "$root/dev" 2>/dev/null
    rm -rf --one-file-system "$scratch"
}
trap finish EXIT

version=$(sed -n 's/^.define TOOLGATE_VERSION "\(.*\)"/\1/p' src/base/version.h)
check "make static" make -s --no-print-directory BUILD="$build" static-now
check "it needs glibc 2.34 at most, and no library beside it" sh -c "
    test \"\$(printf '%s\n' 2.34 \$(objdump -T '$build/static/toolgate' | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p') | sort -V | tail -n 1)\" = 2.34 &&
    ! objdump -p '$build/static/toolgate' | grep NEEDED | grep -vE 'lib(c|m|gcc_s)\.so'"
for kind in wheel npm-package; do
    check "make $kind" make -s --no-print-directory BUILD="$build" "$kind-now"
    package=$(ls -t "$build"/toolgated-*.whl "$build"/toolgated-*.tgz 2>/dev/null | head -n 1)
    cp "$package" "$scratch/"
    make -s --no-print-directory BUILD="$build" "$kind-now" > /dev/null 2>&1
    check "make $kind gives the same bytes again" cmp "$package" "$scratch/${package##*/}"
done

# ---- npm: a command of its own, no script of JavaScript before it ----
mkdir "$scratch/npm" "$scratch/home"
check "npm install takes the package" env -C "$scratch/npm" HOME="$scratch/home" npm install --silent --offline "$scratch"/toolgated-*.tgz
check "npx runs it" test "$(env -C "$scratch/npm" HOME="$scratch/home" npx --offline toolgated --version)" = "toolgate $version"
check "node_modules/.bin/toolgate is the program" sh -c "head -c 4 '$scratch/npm/node_modules/.bin/toolgate' | grep -q ELF"

# ---- the wheel in a bare Debian ----
close_descriptors
mmdebstrap --quiet --aptopt='Acquire::Retries "5"' --variant=minbase --include=python3-venv bookworm "$root" \
    2> "$scratch/log" || { echo "not ok - a bare Debian begins"; sed 's/^/#   /' "$scratch/log" | tail -n 10; exit 1; }
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev"
cp "$scratch"/toolgated-*.whl "$root/root/"
inside() { chroot "$root" env -i PATH=/root/v/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -c "$1"; }
check "pip installs the wheel" inside 'python3 -m venv /root/v && pip install -q --no-index /root/toolgated-*.whl'
check "both commands run" inside "test \"\$(toolgate --version; toolgated --version)\" = 'toolgate $version
toolgate $version'"
check "the shipped policies came with it" inside \
    'toolgate test /root/v/share/toolgate/policies/assistant | tail -n 1 | grep -q " passed, 0 failed"'
check "the root has no libcurl" inside '! ls /usr/lib/*/libcurl* 2>/dev/null'
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout "$scratch/key.pem" -out "$scratch/certificate.pem" 2> /dev/null
cat "$scratch/key.pem" "$scratch/certificate.pem" > "$root/root/server.pem"
cp "$scratch/certificate.pem" "$root/root/"
echo '127.0.0.1 localhost' >> "$root/etc/hosts"
cat > "$root/root/serve.py" <<'SERVE'
import http.server, ssl
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"state": "idle"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/root/server.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
open("/root/port", "w").write(str(server.server_port))
server.serve_forever()
SERVE
cat > "$root/root/try.sh" <<'TRY'
set -eu
cd /root
python3 serve.py > /dev/null 2>&1 & server=$!
trap 'kill $server $gate' EXIT
gate=
until [ -s port ]; do kill -0 $server; done
mkdir policies
cat > policies/get_state.lua <<POLICY
-- get_state: the state of the plant. Read only.
return tool "get_state" {
  description = "Get the state.",
  schema = params {},
  effects = "read",
  http = { "GET https://localhost:$(cat port)/state", ca_file = "/root/certificate.pem" },
}
POLICY
toolgate serve --socket /root/t.sock --policies policies > gate.log 2>&1 & gate=$!
until toolgate status --socket /root/t.sock > /dev/null 2>&1; do kill -0 $gate; done
toolgate call --socket /root/t.sock get_state '{}' || cat gate.log
TRY
check "its libcurl fetches over TLS" inside 'timeout 60 sh /root/try.sh > /root/said 2>&1; cat /root/said; grep -q idle /root/said'
