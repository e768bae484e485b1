#!/usr/bin/env python3
"""Replays recorded calls of real models through toolgate/check and toolgate/report. Prints TAP, which run.lua counts.

usage: corpus.py CORPUS-FOLDER TOOLSET=SOCKET...   one daemon for each toolset, started with --tools

Ground truth: only calls that the corpus lists as defects may be refused. Trajectories run in order, with turn and step:
a refused call is not reported, and the recording continues. Each refusal in a session without errors is printed.
"""
import glob
import json
import socket
import sys
from collections import OrderedDict

RUNAWAY = 32  # identical successful calls in a row; the next longest run of the corpus is 8
REFUSED_AT_MOST = 0.01  # of the sessions without errors
STOPPED = ("refuse", "halt")


class Gate:
    """A connection to a daemon."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.id = 0

    def ask(self, method, params):
        self.id += 1
        request = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.lines.readline())
        if "result" not in answer:
            raise SystemExit(f"not ok - {method} answered {answer}")
        return answer["result"]


failures = 0


def tap(what, good, notes=()):
    global failures
    failures += not good
    print(("ok - " if good else "not ok - ") + what)
    for note in notes:
        print("#   " + note)


def rows(folder, pattern):
    for path in sorted(glob.glob(f"{folder}/{pattern}")):
        with open(path) as lines:
            yield from map(json.loads, lines)


def place(row):
    return row["source"], row["session"], row["turn"], row["tool"]


def described(row, verdict):
    words = (verdict.get("detail") or verdict.get("code") or "")[:90]
    return f"{row['session']} turn {row['turn']}: {row['tool']} {verdict['verdict']} {verdict.get('error_class')}: {words}"


def ground_truth(folder, gates):
    defects = {place(row) for row in rows(folder, "defects-groundtruth.ndjson")}
    calls, refused, excused = 0, [], 0
    for number, row in enumerate(rows(folder, "calls-*-groundtruth.ndjson")):
        meta = {"dev.toolgate/session": f"truth/{number}"}
        said = gates[row["toolset"]].ask(
            "toolgate/check", {"name": row["tool"], "arguments": row["arguments"], "_meta": meta})
        calls += 1
        if said["verdict"] != "pass":
            if place(row) in defects:
                excused += 1
            else:
                refused.append(described(row, said))
    tap(f"ground truth: of {calls} calls only defects are refused ({excused} of {len(defects)} refused)",
        calls > 0 and not refused, refused)


def trajectories(folder):
    sessions = OrderedDict()
    for row in rows(folder, "trajectories-*.ndjson"):
        sessions.setdefault((row["source"], row["session"]), []).append(row)
    return sessions


def same(row):
    return row["tool"], json.dumps(row["arguments"], sort_keys=True)


def longest_run(session):
    """First index and length of the longest run of identical calls."""
    best, begin = (0, 0), 0
    for i in range(1, len(session) + 1):
        if i == len(session) or same(session[i]) != same(session[begin]):
            best = max(best, (i - begin, -begin))
            begin = i
    return -best[1], best[0]


def outcome(row):
    if row["is_error"]:
        return {"error": {"message": row["result"], "transient": row["env"] == "transient"}}
    return {"result": {"content": [{"type": "text", "text": row["result"]}]}}


def replay(name, session, gates):
    """The verdict of each call of a recorded session."""
    verdicts = []
    for row in session:
        gate = gates[row["toolset"]]
        meta = {"dev.toolgate/session": "/".join(name), "dev.toolgate/turn": row["turn"],
                "dev.toolgate/step": str(row["step"])}
        said = gate.ask("toolgate/check", {"name": row["tool"], "arguments": row["arguments"], "_meta": meta})
        verdicts.append(said)
        if said["verdict"] == "pass":
            gate.ask("toolgate/report", {"callId": said["callId"], "name": row["tool"],
                                         "arguments": said["arguments"], "_meta": meta, **outcome(row)})
    return verdicts


def main(folder, *sockets):
    gates = {name: Gate(path) for name, path in (pair.split("=", 1) for pair in sockets)}
    ground_truth(folder, gates)

    sessions = trajectories(folder)
    runaways, well, refused = 0, 0, []
    calls = 0
    for name, session in sessions.items():
        verdicts = replay(name, session, gates)
        calls += len(verdicts)
        begin, length = longest_run(session)
        if length >= RUNAWAY:
            runaways += 1
            passed = [i - begin + 1 for i in range(begin + 2, begin + length)
                      if verdicts[i]["verdict"] not in STOPPED]
            tap(f"runaway {name[1][:60]}: refused from the third of {length} identical calls", not passed,
                [f"passed: number {', '.join(map(str, passed[:20]))}"] if passed else [])
        elif not any(row["is_error"] for row in session):
            well += 1
            stopped = [described(row, said) for row, said in zip(session, verdicts) if said["verdict"] != "pass"]
            if stopped:
                refused.append(stopped)
    tap(f"trajectories: {calls} calls of {len(sessions)} sessions were judged", calls > 0)
    tap("trajectories: six sessions run away", runaways == 6, [f"found {runaways}"])
    tap(f"trajectories: of {well} sessions without errors {len(refused)} have a refusal"
        f" ({100 * len(refused) / well:.2f}%, at most {100 * REFUSED_AT_MOST:.0f}%)",
        len(refused) <= REFUSED_AT_MOST * well, [line for session in refused for line in session])
    return failures


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
