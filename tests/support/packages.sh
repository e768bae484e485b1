#!/bin/sh
# Announces the Debian packages that are missing and installs them; DEPS=no only names them and fails.
# usage: packages.sh FOR-WHAT PACKAGE...
what=$1
shift
missing=
for package; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "${DEPS:-yes}" = no ]; then
    echo "$what needs these Debian packages, which are missing:$missing" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || {
        echo "$what needs these Debian packages; without root or sudo they can't be installed:$missing" >&2
        exit 1
    }
fi
echo "$what needs these Debian packages, installing them now:$missing"
$sudo apt-get -qq -o Acquire::Retries=3 update &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=3 --no-install-recommends install $missing >/dev/null ||
    { echo "$what: apt-get could not install:$missing" >&2; exit 1; }
