"""Runs the official JSON Schema test suite on `toolgate-bench bowtie`, with the protocol of the Bowtie project.

    python3 json_schema.py TOOLGATE-BENCH [--suite DIR]

The suite is at --suite, at $JSON_SCHEMA_TEST_SUITE, or beside the repository. Prints TAP: each dialect's required cases
must pass, and the optional ones that toolgate claims.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

DRAFTS = [("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
          ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
          ("draft7", "http://json-schema.org/draft-07/schema#")]
UNCLAIMED = {"content": "contentEncoding and contentMediaType annotate"}  # all other optional files are claimed
REMOTE = "http://localhost:1234"
PLACES = ["../shared/data/json-schema-test-suite"]

# A number must reach the validator with its spelling in the suite (1e400, 1.0, thirty digits), which Python's parser
# would lose: it is a marked string until the line is written.
MARK = "\x00number:"
UNMARK = re.compile(r'"\\u0000number:([^"]*)"')


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=lambda s: MARK + s, parse_int=lambda s: MARK + s)


def write(value):
    return UNMARK.sub(r"\1", json.dumps(value))


def where_is_the_suite(named):
    for place in [named, os.environ.get("JSON_SCHEMA_TEST_SUITE"), *PLACES]:
        if place and os.path.isdir(os.path.join(place, "tests")):
            return place
    return None


def remotes(root):
    found = {}
    for path in glob.glob(root + "/remotes/**/*.json", recursive=True):
        found[REMOTE + path[len(root + "/remotes"):]] = read(path)
    return found


def cases(root, draft, registry):
    """Each file's groups as (kind, name, case, expected results); kind: required, or the optional file's name."""
    base = os.path.join(root, "tests", draft)
    for path in sorted(glob.glob(base + "/**/*.json", recursive=True)):
        name = os.path.relpath(path, base)[:-len(".json")]
        if name.startswith("optional/format/"):
            continue  # the protocol cannot assert formats; make test runs these files
        kind = name[len("optional/"):] if name.startswith("optional/") else "required"
        for group in read(path):
            case = {"description": group["description"], "schema": group["schema"],
                    "tests": [{"description": t["description"], "instance": t["data"]} for t in group["tests"]]}
            if REMOTE in json.dumps(group["schema"]):
                case["registry"] = registry
            yield kind, name, case, [t["valid"] for t in group["tests"]]


def run(bench, root, draft, dialect, registry):
    """Runs all cases of a dialect in one process; returns the cases with their answers."""
    wanted, lines = [], [json.dumps({"cmd": "start", "version": 1}), json.dumps({"cmd": "dialect", "dialect": dialect})]
    for seq, (kind, name, case, valid) in enumerate(cases(root, draft, registry)):
        wanted.append((kind, name, case, valid))
        lines.append(write({"cmd": "run", "seq": seq, "case": case}))
    lines.append(json.dumps({"cmd": "stop"}))
    done = subprocess.run([bench, "bowtie"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=300, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(wanted) + 2 or answers[1] != {"ok": True}:
        print(f"not ok - {draft}: exit {done.returncode}, {len(answers)} answers to {len(wanted) + 2} requests: "
              f"{done.stderr.strip()[:300]}")
        return None
    return list(zip(wanted, answers[2:]))


def judge(draft, pairs):
    tally = {}
    for (kind, name, case, valid), answer in pairs:
        results = answer.get("results", [])
        for i, want in enumerate(valid):
            good = i < len(results) and results[i].get("valid") is want
            row = tally.setdefault(kind, [0, 0])
            row[0] += good
            row[1] += 1
            if not good and kind not in UNCLAIMED:
                print(f"  # {draft}/{name}: {case['description']} / {case['tests'][i]['description']}: "
                      f"{json.dumps(answer)[:200]}")
    return tally


def main():
    options = argparse.ArgumentParser()
    options.add_argument("bench")
    options.add_argument("--suite")
    given = options.parse_args()
    root = where_is_the_suite(given.suite)
    if not root:
        print("  # skipped: no test suite at --suite, $JSON_SCHEMA_TEST_SUITE or " + ", ".join(PLACES))
        return 0
    print(f"  # the suite is at {root}")
    registry, bad = remotes(root), 0
    for draft, dialect in DRAFTS:
        pairs = run(given.bench, root, draft, dialect, registry)
        if pairs is None:
            return 1
        tally = judge(draft, pairs)
        for kind, (good, total) in sorted(tally.items(), key=lambda item: (item[0] != "required", item[0])):
            line = f"{draft} {kind}: {good} of {total}"
            if kind in UNCLAIMED:
                print(f"  # not claimed: {line} ({UNCLAIMED[kind]})")
                continue
            print(f"{'ok' if good == total else 'not ok'} - {line}")
            bad += good != total
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
