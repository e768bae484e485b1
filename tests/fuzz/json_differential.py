"""Compares our JSON parser with Python's on the same bytes: both accept or both reject, and both read the same value.

    python3 json_differential.py READER CORPUS [SECONDS] [SEED]

READER is json_reader.c, built. Starts from the files of CORPUS and mutates them. Where Python is laxer than RFC 8259
and RFC 7493 (NaN, lone surrogates, duplicate keys), it is held to them first. Exits 1 at the first difference and
leaves its bytes in ./difference.json.
"""
import glob
import json
import random
import struct
import subprocess
import sys
import time

MAX_DEPTH = 128  # json/parse.h
BATCH = 2000
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud83d\\ude00", b"\\ud800", b"\\udc00", b"null",
          b"true", b"false", b"-", b"0", b"1", b"9", b".", b"e", b"E", b"+", b"1e400", b"-0", b"0.1", b" ", b"\t", b"\n",
          b"\r", b"\x0b", b"\x0c", b"\x00", b"\x1f", b"\x7f", b"\xc2\xa0", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\xaf",
          b"\xf4\x90\x80\x80", b"\xff", b"//", b"/**/", b"'", b"NaN", b"Infinity", b'"a":1', b"9007199254740993"]


class Refused(Exception):
    pass


def no_constant(text):
    raise Refused(text)


def pairs(found):
    keys = [key for key, _ in found]
    if len(keys) != len(set(keys)):
        raise Refused("duplicate key")
    return dict(found)


def depth(value):
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max((depth(v) for v in inner), default=0)
    return 0


def has_lone_surrogate(value):
    if isinstance(value, str):
        return any(0xD800 <= ord(c) < 0xE000 for c in value)
    if isinstance(value, dict):
        return any(has_lone_surrogate(k) or has_lone_surrogate(v) for k, v in value.items())
    return isinstance(value, list) and any(map(has_lone_surrogate, value))


FAR = 10 ** 36  # of an exponent beyond it toolgate keeps only that it is far (src/json/decimal.h)


def number(literal):
    """A number by its exact value, of any length; marked, so that 1 and true differ."""
    mantissa, _, exponent = literal.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "number", 0, "", 0
    magnitude = int(exponent or 0) - len(fraction) + len(digits)
    return "number", mantissa[0] == "-", significant, max(-FAR, min(FAR, magnitude))


def read(text):
    """Raises if the text is not JSON."""
    value = json.loads(text, parse_float=number, parse_int=number, parse_constant=no_constant, object_pairs_hook=pairs)
    if has_lone_surrogate(value) or depth(value) > MAX_DEPTH:
        raise Refused("surrogate or depth")
    return value


def pythons(data):
    """('=', value) or ('!', why)."""
    try:
        text = data.decode("utf-8")
        if text.startswith("\ufeff"):
            raise Refused("byte order mark")
        return "=", read(text)
    except (ValueError, Refused, RecursionError) as why:
        return "!", repr(why)


def mutate(rng, corpus):
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.randint(0, 4)):
        at, kind = rng.randint(0, len(data)), rng.randint(0, 5)
        if kind == 0:
            data[at:at] = rng.choice(PIECES)
        elif kind == 1:
            del data[at:at + rng.randint(1, 8)]
        elif kind == 2 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 3:
            other = rng.choice(corpus)
            start = rng.randint(0, len(other))
            data[at:at] = other[start:start + rng.randint(1, 40)]
        elif kind == 4:
            end = at + rng.randint(1, 20)
            data[at:at] = data[at:end]
        else:
            data[at:at + 1] = rng.choice(PIECES)
    return bytes(data[:20000])


def compare(reader, batch):
    given = b"".join(struct.pack("<I", len(data)) + data for data in batch)
    done = subprocess.run([reader], input=given, capture_output=True, timeout=120, check=False)
    lines = done.stdout.decode("utf-8").split("\n")
    if done.returncode != 0 or len(lines) != len(batch) + 1:
        return batch[min(len(lines) - 1, len(batch) - 1)], f"the reader ended with {done.returncode}: {done.stderr!r}"
    for data, line in zip(batch, lines):
        verdict, value = pythons(data)
        if line[0] != verdict or (verdict == "=" and read(line[2:]) != value):
            return data, f"ours: {line[:300]}\nPython's: {verdict} {str(value)[:300]}"
    return None


def main():
    reader, folder = sys.argv[1], sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    sys.set_int_max_str_digits(0)
    corpus = [open(path, "rb").read() for path in sorted(glob.glob(folder + "/*"))]
    end, count, taken = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        batch = [mutate(rng, corpus) for _ in range(BATCH)]
        found = compare(reader, batch)
        if found:
            with open("difference.json", "wb") as file:
                file.write(found[0])
            print(f"json_differential: {found[0][:200]!r}\n{found[1]}")
            return 1
        count += BATCH
        taken += sum(pythons(data)[0] == "=" for data in batch[:20]) * BATCH // 20
    print(f"json_differential: {count} texts, about {taken} of them JSON, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
