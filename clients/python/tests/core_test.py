"""The core, with the standard library alone. Starts its own daemons. usage: TOOLGATE=… core_test.py"""
from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import pickle
import socket as sockets
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import served
import tap

import toolgate.sync
from toolgate import Failure, Gate, Halt, ProtocolError, Repair, ToolgateError, Unavailable
from toolgate.exchanges import SessionState
from toolgate.link import Link

TOOL = {
    "name": "forecast", "description": "The weather.", "annotations": {"readOnlyHint": True},
    "_meta": {"dev.toolgate/schema": "strict"},
    "inputSchema": {"type": "object", "additionalProperties": False, "required": ["city"],
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
MOVE = """-- move: moves the arm. Asks. For tests.
return tool "move" { description = "Move the arm.", effects = "write", schema = params { steps = int "How far" },
  redact = { "secret" },
  check = function() return ask("Move?", { "move", "stay" }) end }
"""


daemon = functools.partial(served.daemon, {"move": MOVE})


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """What the client logs meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("toolgate").addHandler(handler)
    try:
        yield lines
    finally:
        logging.getLogger("toolgate").removeHandler(handler)


@contextlib.contextmanager
def deaf(backlog: int = 100) -> Iterator[str]:
    """A socket that never answers."""
    with tempfile.TemporaryDirectory() as folder, sockets.socket(sockets.AF_UNIX) as listener:
        listener.bind(folder + "/t.sock")
        listener.listen(backlog)
        yield folder + "/t.sock"


def test_by() -> None:
    """core: a turn says that a person began it where the program says so, and never by itself"""
    settings = Gate("/nonexistent").settings
    for by, wanted in ((None, {"goal": "rain?"}), ("person", {"goal": "rain?", "by": "person"})):
        request = next(SessionState("s", settings).begin_turn("rain?", None, by))  # type: ignore[arg-type]
        assert {key: value for key, value in request.params.items() if key != "_meta"} == wanted, request
    with daemon() as one, toolgate.sync.Gate(one.socket) as gate:
        with gate.session("s").turn("rain?", by="person") as turn:
            assert turn.number == 1


def test_goal() -> None:
    """core: a user may write more than a goal may have, and half a character"""
    with daemon() as one, toolgate.sync.Gate(one.socket) as gate:
        for n, words in enumerate(("ä" * 9000, "rain? \ud83d", "x" * 8191 + "ä")):
            with gate.session("s").turn(words) as turn:
                assert turn.number == n + 1


def test_attempts() -> None:
    """core: attempts run out though each call has an id of its own, and a right call still passes"""
    with daemon() as one, toolgate.sync.Gate(one.socket, tools=[TOOL]) as gate:
        session = gate.session("s")
        said = [session.check("forecast", wrong, step=f"m{n}", call=f"call_{uuid.uuid4().hex}").verdict
                for n, wrong in enumerate(tap.WRONG)]
        assert [verdict.kind for verdict in said] == ["repair", "repair"] + ["refuse"] * (len(said) - 2), said
        assert [verdict.attempts_left for verdict in said[:2]] == [2, 1], said
        assert session.check("forecast", {"city": "Bern"}, step="last", call=uuid.uuid4().hex).passed


async def test_check_and_report() -> None:
    """core: check and report, with typed verdicts"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            async with session.turn(goal="rain in Bern?") as turn:
                assert turn.number == 1
                bad = await session.check("forecast", {"city_name": "Bern"})
                assert bad.verdict.kind == "repair" and bad.verdict.problems[0].path == "args.city_name", bad
                assert bad.verdict.suggestions[0].value == "city" and bad.verdict.attempts_left == 2, bad
                try:
                    bad.raise_for_verdict()
                except Repair as error:
                    assert "did you mean 'city'?" in str(error)
                good = await session.check("forecast", {"city": "Bern", "days": "2"})
                assert good.passed and good.arguments == {"city": "Bern", "days": 2} and "read as 2" in good.advice, good
                told = await session.report(good, {"sky": "grey"})
                assert told.text == '{"sky":"grey"}' and told.unchanged, told
                failing = await session.check("forecast", {"city": "Brno"})
                told = await session.report(failing, error=Failure("rate limited", transient=True))
                assert told.verdict.kind == "wait" and told.verdict.after_s, told


async def test_arguments_as_the_model_wrote_them() -> None:
    """core: text, lone surrogates, NaN, duplicate and deep arguments get a verdict, not an exception"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            for given, words in (('{"city": "Bern", "city": "Brno"}', "duplicate key"), ({"city": "\ud800"}, "surrogate"),
                                 ('{"city": "Bern", "days": NaN}', "NaN"), ("[" * 5000, ""), (None, "city"), ("", "city")):
                checked = await gate.session(f"s{words}").check("forecast", given)
                assert not checked.passed and words in checked.text, (given, checked.text)
            checked = await gate.session("digits").check("forecast", '{"city": "Bern", "days": 1%s}' % ("0" * 5000))
            assert checked.passed and checked.arguments["days"] == float("inf"), checked


def test_sync() -> None:
    """core: the same without asyncio, in several threads"""
    with daemon() as one:
        gate = toolgate.sync.Gate(one.socket, tools=[TOOL])
        heard: list[str] = []

        def work(name: str) -> None:
            with gate.session(name).turn("rain?") as turn:
                for city in ("Bern", "Brno", "Basel"):
                    checked = turn.session.check("forecast", {"city": city})
                    heard.append(turn.session.report(checked, {"city": city}).text)
            gate.close()

        threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(heard) == sorted(f'{{"city":"{city}"}}' for city in ("Bern", "Brno", "Basel") * 4), heard


def test_fork() -> None:
    """core: a process that was forked has a connection of its own"""
    with daemon() as one, toolgate.sync.Gate(one.socket, tools=[TOOL]) as gate:
        assert gate.session("s").check("forecast", {"city": "Bern"}).passed
        child = os.fork()
        if child == 0:
            passed = False
            try:
                passed = gate.session("t").check("forecast", {"city": "Brno"}).passed
            finally:
                os._exit(0 if passed else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert gate.request("toolgate/status")["connections"]["accepted"] == 2


async def test_late_daemon() -> None:
    """core: a daemon that comes late is waited for"""
    with daemon(starts=False) as one:
        async with Gate(one.socket, tools=[TOOL], wait_s=30) as gate:
            check = asyncio.create_task(gate.session("s").check("forecast", {"city": "Bern"}))
            await asyncio.sleep(0)
            one.start()
            assert (await check).passed


async def test_restart() -> None:
    """core: a daemon that is killed and restarted is found again, and the tools are declared again"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL], wait_s=30) as gate:
            session = gate.session("s")
            assert (await session.check("forecast", {"city": "Bern"})).passed
            one.kill()
            one.start()
            assert (await session.check("forecast", {"city": "Brno"})).passed
        sync = toolgate.sync.Gate(one.socket, tools=[TOOL], wait_s=30).session("t")
        assert sync.check("forecast", {"city": "Bern"}).passed
        one.kill()
        one.start()
        assert sync.check("forecast", {"city": "Brno"}).passed


async def test_report_to_another_daemon() -> None:
    """core: a report whose check the restarted daemon does not know still gives the model the result, or says so"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL], wait_s=30, on_unavailable="allow") as gate:
            session = gate.session("s")
            checked = await session.check("forecast", {"city": "Bern"})
            one.kill()
            one.start()
            assert "grey" in (await session.report(checked, {"sky": "grey"})).text


async def test_unavailable() -> None:
    """core: without a daemon a call raises, runs unchecked, or is refused, as on_unavailable says"""
    for make in (Gate, toolgate.sync.Gate):
        async def check(how: Any) -> Any:
            session = make("/nonexistent/t.sock", wait_s=0, on_unavailable=how).session("s")
            checked: Any = session.check("forecast", {"city": "Bern"})
            checked = await checked if asyncio.iscoroutine(checked) else checked
            if not checked.passed:
                return checked, None
            told: Any = session.report(checked, {"sky": "grey"})
            return checked, await told if asyncio.iscoroutine(told) else told

        try:
            await check("raise")
        except Unavailable as error:
            assert "toolgate serve --socket /nonexistent/t.sock" in str(error), error
        else:
            raise AssertionError("no error")
        checked, told = await check("allow")
        assert checked.arguments == {"city": "Bern"} and checked.call_id is None and "grey" in told.text
        refused, _ = await check("refuse")
        text: Any = make("/nonexistent/t.sock", wait_s=0, on_unavailable="allow").session("s").check("forecast", '{"city": "B')
        text = await text if asyncio.iscoroutine(text) else text
        assert text.verdict.code == "invalid_arguments" and "no JSON" in text.text, text
        assert refused.verdict.kind == "refuse" and "was not run" in refused.text and "Tell the user" in refused.text


async def test_result_without_daemon() -> None:
    """core: a result that nobody can check raises, goes to the model, or is withheld, as on_unavailable says"""
    with daemon() as one:
        await Gate(one.socket, wait_s=30).request("ping")
        gates: list[Any] = [Gate(one.socket, tools=[TOOL], wait_s=0, on_unavailable=how)  # type: ignore[arg-type]
                            for how in ("raise", "allow", "refuse")]
        checks = [await gate.session("s").check("forecast", {"city": f"c{n}"}) for n, gate in enumerate(gates)]
        one.kill()
        try:
            await gates[0].session("s").report(checks[0], {"sky": "grey"})
        except Unavailable:
            pass
        else:
            raise AssertionError("no error")
        assert (await gates[1].session("s").report(checks[1], {"sky": "grey"})).text == '{"sky":"grey"}'
        withheld = (await gates[2].session("s").report(checks[2], {"sky": "grey"})).text
        assert "grey" not in withheld and "Look before you repeat it" in withheld, withheld


async def test_timeout() -> None:
    """core: a daemon that does not answer in time is unavailable"""
    with deaf() as path:
        for session in (Gate(path, timeout_s=0.05).session("s"), toolgate.sync.Gate(path, timeout_s=0.05).session("s")):
            try:
                checked: Any = session.check("forecast", {})
                await checked
            except Unavailable as error:
                assert "has not answered toolgate/check" in str(error), error
            else:
                raise AssertionError("no error")


async def test_timeout_of_a_long_request() -> None:
    """core: a daemon that reads nothing is unavailable, too, and what it has not read is dropped"""
    with deaf() as path:
        gate = Gate(path, timeout_s=0.05)
        try:
            await gate.session("s").check("forecast", {"city": "x" * 4_000_000})
        except Unavailable as error:
            assert "has not answered toolgate/check" in str(error), error
        else:
            raise AssertionError("no error")
        link = gate.connection()._link
        assert link
        await link._task
        assert link.lost


async def test_nobody_accepts() -> None:
    """core: a daemon that accepts no connection is unavailable"""
    with deaf(backlog=0) as path:
        for n in range(8):
            one = sockets.socket(sockets.AF_UNIX)
            one.setblocking(False)
            if one.connect_ex(path):
                break
        for session in (Gate(path, wait_s=0.05).session("s"), toolgate.sync.Gate(path, wait_s=0.05).session("s")):
            try:
                checked: Any = session.check("forecast", {})
                await checked
            except Unavailable:
                pass
            else:
                raise AssertionError("no error")


async def test_outage_of_many() -> None:
    """core: requests that find no daemon wait for it together, not one after the other"""
    attempts = 0

    async def fails(path: str, answerer: Any) -> Link:
        nonlocal attempts
        attempts += 1
        raise FileNotFoundError(path)

    gate, opens = Gate("/nonexistent/t.sock", wait_s=0.05, on_unavailable="refuse"), Link.open
    Link.open = fails  # type: ignore[method-assign, assignment]
    try:
        with logged():
            checks = await asyncio.gather(*[gate.session("s").check("forecast", {"city": f"c{n}"}) for n in range(50)])
    finally:
        Link.open = opens  # type: ignore[method-assign]
    assert not [one for one in checks if one.passed]
    assert attempts < 60, attempts  # one for each, and those of one wait


async def test_no_toolgate() -> None:
    """core: a socket of another program, or a daemon that does not welcome us, is an error that says so at once"""
    with tempfile.TemporaryDirectory() as folder:
        says = b""

        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(says)
            await writer.drain()

        server = await asyncio.start_unix_server(greet, folder + "/t.sock")
        async with server:
            for says, words in ((b"HTTP/1.1 400 Bad Request\r\n\r\n", "no toolgate"),
                                (b'{"id":[1]}\n', "no toolgate"), (b"7\n", "no toolgate"),
                                (b'{"id":null,"error":{"code":1011,"message":"not welcome"}}\n', "not welcome")):
                try:
                    await Gate(folder + "/t.sock", timeout_s=3600).session("s").check("forecast", {})
                except ToolgateError as error:
                    assert words in str(error), error
                else:
                    raise AssertionError("no error")


async def test_cancel() -> None:
    """core: a cancelled run gives back what its check reserved"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            for _ in range(4):  # reported, the third would be a loop
                checked = await session.check("forecast", {"city": "Bern"})
                assert checked.passed, checked
                running = asyncio.Event()

                async def sleep() -> None:
                    running.set()
                    await asyncio.sleep(3600)

                task = asyncio.create_task(session.run(checked, sleep))
                await running.wait()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            async with session.turn("again"):
                assert (await session.check("forecast", {"city": "Brno"})).passed
            seen = await gate.request("toolgate/session", session="s")
            assert not [call for call in seen["history"] if call.get("class") == "pending"], seen


async def test_cancelled_as_it_passes() -> None:
    """core: a check that passes in the moment in which it is cancelled is given back"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            session.release(await session.check("forecast", {"city": "Bern"}))
            link: Any = gate.connection()._link
            take = link._take

            def takes(message: Any) -> None:
                take(message)
                task.cancel()

            link._take = takes
            task = asyncio.create_task(session.check("forecast", {"city": "Brno"}))
            await asyncio.gather(task, return_exceptions=True)
            link._take = take
            assert task.cancelled()
            while True:  # it is given back behind the cancelled task
                seen = await gate.request("toolgate/session", session="s")
                if [call["class"] for call in seen["history"]] == ["cancelled", "cancelled"]:
                    break
                await asyncio.sleep(0.01)


async def test_cancelled_many() -> None:
    """core: checks that were cancelled are not remembered without end"""
    with deaf() as path:
        async with Gate(path) as gate:
            for n in range(1100):
                task = asyncio.create_task(gate.session(f"s{n}").check("forecast", {}))
                while not gate.connection()._link or not gate.connection()._link._waiting:  # type: ignore[union-attr]
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            link = gate.connection()._link
            assert link and len(link._given_up) == 1024, link


def test_result_that_cannot_be_said() -> None:
    """core: a result that is no JSON gives the call back, without asyncio, too"""
    with daemon() as one, toolgate.sync.Gate(one.socket, tools=[TOOL]) as gate:
        session = gate.session("s")
        try:
            session.run(session.check("forecast", {"city": "Bern"}), object)
        except TypeError as error:
            assert "type object" in str(error)
        else:
            raise AssertionError("no error")
        seen = gate.request("toolgate/session", session="s")
        assert [call["class"] for call in seen["history"]] == ["cancelled"], seen


async def test_halt() -> None:
    """core: a loop ends with halt"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            kinds = []
            for step in range(5):
                checked = await session.check("forecast", {"city": "Bern"}, step=str(step))
                kinds.append(checked.verdict.kind)
                if checked.passed:
                    await session.report(checked, {"sky": "grey"})
            assert kinds == ["pass", "pass", "refuse", "refuse", "halt"] and checked.verdict.halted, kinds
            try:
                checked.raise_for_verdict()
            except Halt as halt:
                assert halt.verdict.halted


async def test_ask() -> None:
    """core: a policy's question goes to on_ask: the first choice lets the call run, any other does not"""
    with daemon() as one:
        for answer, kind, code in (("move", "pass", None), ("stay", "refuse", "declined"), (None, "refuse", "declined")):
            asked: list[Any] = []

            async def on_ask(question: str, choices: Any) -> Any:
                asked.append((question, list(choices)))
                return answer

            async with Gate(one.socket, on_ask=on_ask) as gate:
                checked = await gate.session(f"s{answer}").check("move", {"steps": 1})
            assert (checked.verdict.kind, checked.verdict.code) == (kind, code), checked
            sync = toolgate.sync.Gate(one.socket, on_ask=lambda *_: answer).session(f"t{answer}")
            assert sync.check("move", {"steps": 1}).verdict.kind == kind
            assert asked == [("Move?", ["move", "stay"])], asked
        async with Gate(one.socket) as gate:
            checked = await gate.session("nobody").check("move", {"steps": 1})
            assert checked.verdict.kind == "ask" and checked.verdict.choices == ("move", "stay"), checked


async def test_odd_results() -> None:
    """core: what a tool returns becomes JSON, or is an error that names its type"""
    import dataclasses
    import datetime

    @dataclasses.dataclass
    class Day:
        at: datetime.date
        rain: float = 0.5

    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            for given, text in ((Day(datetime.date(2026, 5, 4)), '{"at":"2026-05-04","rain":0.5}'), (None, "null"),
                                (Day(datetime.date(2026, 5, 5), float("nan")), '{"at":"2026-05-05","rain":null}'),
                                ({"t": float("nan")}, '{"t":null}'), ("plain", "plain"), ({3, 1}, "[1,3]"),
                                ({"sky": "grün"}, '{"sky":"grün"}'), ({"content": [{"id": 1}]}, '{"content":[{"id":1}]}'),
                                ({"content": [{"type": "text", "text": "x"}], "page": 1},
                                 '{"content":[{"type":"text","text":"x"}],"page":1}')):
                checked = await session.check("forecast", {"city": text})
                reported = await session.report(checked, given)
                assert reported.text == text and reported.unchanged, reported
            checked = await session.check("forecast", {"city": "half"})
            assert (await session.report(checked, {"name": "a\udcff"})).text == '{"name":"a\ufffd"}'
            checked = await session.check("forecast", {"city": "x"})
            try:
                await session.report(checked, object())
            except TypeError as error:
                assert "type object" in str(error)
            checked = await session.check("forecast", {"city": "long"})
            told = await session.report(checked, "x" * 9_000_000)
            assert told.verdict.kind == "repair" and "Ask for less" in told.text, told
            deep: Any = 1
            for _ in range(300):
                deep = [deep]
            for n, large in enumerate((list(range(200_000)), deep)):
                session = gate.session(f"large {n}")
                told = await session.run(await session.check("forecast", {"city": "large"}), lambda: large)
                assert told.verdict.kind == "repair" and "Ask for less" in told.text, told


async def test_wrong_use() -> None:
    """core: a wrong use is an error with the fix"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            for wrong, words in (
                (lambda: session.call("forecast", {"city": "Bern"}), "tools=[forecast]"),
                (lambda: gate.request("toolgate/chekc"), "toolgate/check"),
            ):
                try:
                    await wrong()  # type: ignore[no-untyped-call]
                except (ToolgateError, ProtocolError) as error:
                    assert words in str(error) and str(pickle.loads(pickle.dumps(error))) == str(error), error
                else:
                    raise AssertionError(words)
        try:
            await Gate(one.socket, tools=[{"name": "x", "inputSchema": {"type": "string"}}]).session("s").check("x", {})
        except ToolgateError as error:
            assert "definition of x: " in str(error), error
        else:
            raise AssertionError("no error")


async def test_declared_again() -> None:
    """core: tools that are declared for each message are sent once, a changed one again, with a warning in the log"""
    for make in (Gate, toolgate.sync.Gate):
        with daemon() as one, logged() as lines:
            gate = make(one.socket)
            session, sent, note = gate.session("s"), [], gate._greeting.sent

            def counts(said: Any, request: Any, result: Any, own: Any) -> None:
                sent.append(request.method)
                note(said, request, result, own)

            gate._greeting.sent = counts  # type: ignore[method-assign]
            for n in range(20):
                gate.declare([{**TOOL, "description": "first" if n < 10 else "second"}])
                told: Any = session.check("forecast", {"city": f"c{n}"})
                assert (await told if asyncio.iscoroutine(told) else told).passed
            assert len(sent) == 2, sent
            assert [line.split(" than")[0] for line in lines if "declared" in line] == ["forecast is declared with another definition"]
            closed: Any = gate.close()
            if asyncio.iscoroutine(closed):
                await closed


async def test_own_tools() -> None:
    """core: a session's own tools are no other's, however many sessions one connection serves"""
    for make in (Gate, toolgate.sync.Gate):
        with daemon() as one, logged():
            gate: Any = make(one.socket)
            sessions = [gate.session(f"s{n}") for n in range(300)]
            for session in [*sessions, *sessions]:
                session.declare([{**TOOL, "name": "own"}])
                told = session.check("own", {"city": "Bern"})
                assert (await told if asyncio.iscoroutine(told) else told).passed
            told = gate.session("other").check("own", {"city": "Bern"})
            assert (await told if asyncio.iscoroutine(told) else told).verdict.error_class == "unknown_tool"
            assert gate.session("s1") is sessions[1]
            closed = gate.close()
            if asyncio.iscoroutine(closed):
                await closed


async def test_question() -> None:
    """core: a judge's question reaches the model"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")
            checked = await session.check("forecast", {"city": "Bern"})
            reported = await session.report(checked, "grey", coverage="NEED_USER_INPUT", question="Which day?")
            assert reported.text.startswith("grey\n") and "Ask the user: Which day?" in reported.text, reported


async def test_parallel() -> None:
    """core: many calls at a time share one connection"""
    with daemon() as one:
        async with Gate(one.socket, tools=[TOOL]) as gate:
            session = gate.session("s")

            async def one_call(n: int) -> str:
                checked = await session.check("forecast", {"city": f"c{n}"}, step="m1")
                return (await session.report(checked, f"r{n}")).text

            assert await asyncio.gather(*map(one_call, range(50))) == [f"r{n}" for n in range(50)]


def test_loops() -> None:
    """core: one gate serves several event loops"""
    with daemon() as one:
        gate = Gate(one.socket, tools=[TOOL])
        for n in range(3):
            assert asyncio.run(gate.session("s").check("forecast", {"city": f"c{n}"})).passed
            assert not [name for name in os.listdir("/proc/self/fd") if _is_socket(name)], "its connection is closed"
        assert len(gate._connections) == 1


def _is_socket(descriptor: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    except OSError:  # of the listing itself
        return False


if __name__ == "__main__":
    tap.run(globals(), *sys.argv[1:])
