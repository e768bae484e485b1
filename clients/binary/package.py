#!/usr/bin/env python3
"""package.py wheel|npm-package VERSION FROM TO: puts FROM/toolgate and FROM/libcurl.so.4 into a package in the folder TO.

Both packages are called toolgated, which is free on PyPI and npm; the plain name belongs to somebody else. Both install a
command `toolgate`, the program itself, and a command of the package's name, so that `uvx toolgated` and `npx toolgated` do.
The same source gives the same bytes (SOURCE_DATE_EPOCH)."""
import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import sys
import tarfile
import time
import zipfile

NAME = "toolgated"
SUMMARY = "A daemon between LLM agents and their tools: it validates calls, repairs them, and stops loops."
LICENSE = "MIT"
GLIBC = (2, 34)  # tests/spec/layout/static_spec.lua checks the program against it
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}  # Python's and npm's words
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def policies():
    """The shipped policies, by their path below policies/."""
    top = os.path.join(ROOT, "policies")
    for folder, _, names in sorted(os.walk(top)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield os.path.relpath(path, top), read(path)


# ---- a wheel: PEP 427, PEP 491 ----

ALIAS = b'#!/bin/sh\n# The program under the package\'s name.\nexec "$(dirname "$(readlink -f "$0")")/toolgate" "$@"\n'


def wheel(version, source, target):
    version = re.sub(r"~dev.*", ".dev0", version)  # PEP 440
    machine = platform.machine()
    tag = "py3-none-manylinux_%d_%d_%s" % (*GLIBC, machine)
    data, info = "%s-%s.data" % (NAME, version), "%s-%s.dist-info" % (NAME, version)
    files = {
        data + "/scripts/toolgate": (read(source, "toolgate"), 0o755),
        data + "/scripts/" + NAME: (ALIAS, 0o755),
        data + "/data/lib/toolgate/libcurl.so.4": (read(source, "libcurl.so.4"), 0o644),
        info + "/METADATA": (("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nLicense: %s\n"
                              "Description-Content-Type: text/markdown\n\n%s"
                              % (NAME, version, SUMMARY, LICENSE, read(HERE, "README.md").decode())).encode(), 0o644),
        info + "/WHEEL": (("Wheel-Version: 1.0\nGenerator: toolgate\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode(), 0o644),
        info + "/LICENSE": (read(ROOT, "LICENSE"), 0o644),
    }
    for path, content in policies():
        files[data + "/data/share/toolgate/policies/" + path] = (content, 0o644)
    record = "".join("%s,sha256=%s,%d\n" % (
        path, base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), len(content))
        for path, (content, _) in files.items())
    files[info + "/RECORD"] = ((record + info + "/RECORD,,\n").encode(), 0o644)
    path = os.path.join(target, "%s-%s-%s.whl" % (NAME, version, tag))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(max(EPOCH, 315532800))[:6])  # zip begins in 1980
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


# ---- an npm package: the tarball that `npm install FILE` takes ----

def npm_package(version, source, target):
    version = version.replace("~", "-")  # semver
    manifest = {
        "name": NAME, "version": version, "description": SUMMARY, "license": LICENSE,
        "os": ["linux"], "cpu": [MACHINES[platform.machine()]], "libc": ["glibc"],
        "bin": {"toolgate": "bin/toolgate", NAME: "bin/toolgate"},
    }
    files = {
        "package.json": (json.dumps(manifest, indent=2).encode() + b"\n", 0o644),
        "README.md": (read(HERE, "README.md"), 0o644),
        "LICENSE": (read(ROOT, "LICENSE"), 0o644),
        "bin/toolgate": (read(source, "toolgate"), 0o755),
        "lib/toolgate/libcurl.so.4": (read(source, "libcurl.so.4"), 0o644),
    }
    for path, content in policies():
        files["share/toolgate/policies/" + path] = (content, 0o644)
    path = os.path.join(target, "%s-%s.tgz" % (NAME, version))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, EPOCH) as packed, \
            tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo("package/" + name)
            entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
            archive.addfile(entry, io.BytesIO(content))
    return path


if __name__ == "__main__":
    kind, version, source, target = sys.argv[1:]
    print({"wheel": wheel, "npm-package": npm_package}[kind](version, source, target))
