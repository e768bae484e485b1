#!/bin/sh
# libcurl.sh OUTPUT: builds libcurl.so.4 from Debian's source, with its security fixes: HTTP and HTTPS alone, OpenSSL inside,
# so that it needs nothing but libc. `make wheel` and `make npm-package` put it beside the program, for systems without one.
set -eu
output=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The lists of binary packages, asked for sources; apt's own configuration stays as it is.
mkdir -p "$work/lists/partial" "$work/source"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $list in
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/${list##*/}" ;;
    *) [ -s "$list" ] && sed -n 's/^deb /deb-src /p' "$list" > "$work/${list##*/}" ;;
    esac
done
apt_options="-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$work -o Dir::State::Lists=$work/lists -o APT::Sandbox::User=root"
apt-get -qq $apt_options update
cd "$work/source"
apt-get -qq $apt_options source curl > "$work/source.log" 2>&1 || { cat "$work/source.log" >&2; exit 1; }
cd curl-*/

[ -x configure ] || autoreconf -fi > /dev/null 2>&1
./configure --quiet --disable-shared --enable-static --disable-symbol-hiding --with-pic --with-openssl --without-ca-bundle --without-ca-path \
    --disable-ftp --disable-file --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet \
    --disable-tftp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
    --disable-manual --disable-ntlm --disable-alt-svc --without-zlib --without-brotli --without-zstd --without-libpsl \
    --without-libidn2 --without-nghttp2 --without-libssh2 --without-librtmp --without-gssapi > "$work/configure.log"
make -s -j"$(nproc)" -C lib > "$work/make.log" 2>&1 || { tail -n 20 "$work/make.log" >&2; exit 1; }

libraries=$(pkg-config --variable=libdir openssl)
mkdir -p "$(dirname "$output")"
cc -shared -s -Wl,-soname,libcurl.so.4 -Wl,-z,relro,-z,now -Wl,--exclude-libs,libssl.a:libcrypto.a -o "$output" \
    -Wl,--whole-archive lib/.libs/libcurl.a -Wl,--no-whole-archive "$libraries/libssl.a" "$libraries/libcrypto.a" -lpthread
