"""Recordings: found by hash or by cell, never guessed; written whole, read whole."""

from __future__ import annotations

import json
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import BadRequest, InputError, StoreError
from agenteval.models.client import Client
from agenteval.models.openai import OpenAITransport
from agenteval.models.replay import FileRecorder, ReplayTransport
from agenteval.models.wire import NONCE, Reply, Request
from agenteval.records import Usage
from agenteval.testing import serve


def ask(text: str = "hello", **more: Any) -> Request:
    return Request(messages=({"role": "user", "content": text},), **more)


def write(path: Path, *entries: Any, end: str = "\n") -> Path:
    lines = [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in entries]
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rec.jsonl"


REPLY = Reply(
    "said \u2028 so",
    usage=Usage(requests=1, prompt_tokens=3, completion_tokens=2),
    tool_calls=({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},),
    latency=0.5,
)


async def test_what_was_recorded_is_answered(file: Path) -> None:
    recorder = FileRecorder(file)
    recorder.record(ask("a", run_id="r1", role="quantifier"), REPLY)
    recorder.record(ask("b", repeat=1), Reply("b1"))
    replay = ReplayTransport(file)
    assert await replay.send(ask("a")) == REPLY
    assert (await replay.send(ask("b", repeat=1))).text == "b1"
    # the words have changed since: found by run, repeat and role
    assert await replay.send(ask("other words", run_id="r1", role="quantifier")) == REPLY
    assert replay.model == "replay:rec.jsonl"
    await replay.close()


async def test_what_says_what_it_is_about_answers_for_nothing_else(file: Path) -> None:
    """Words of a prompt may change; the text that is judged and the criteria may not."""
    about = {"text": "t1", "criteria": "c1"}
    copy = {"run_id": "r1", "role": "quantifier", "variant": "pad:0.25:0"}
    recorder = FileRecorder(file)
    recorder.record(ask("a", run_id="r1", role="quantifier", about=about), REPLY)
    recorder.record(ask("b", about=about | {"text": "t2"}, **copy), Reply("of the copy"))
    recorder.record(ask("c", role="consolidate", about={"list": "l1"}), Reply("ideas"))
    replay = ReplayTransport(file)
    assert replay.copied == {("r1", "pad:0.25:0")}
    found = replay.find(ask("new words", run_id="r1", role="quantifier", about=about))
    assert found == REPLY
    assert replay.find(ask("new", about=about | {"text": "t2"}, **copy)).text == "of the copy"
    assert replay.find(ask("new", role="consolidate", about={"list": "l1"})).text == "ideas"
    for request, told in [
        (ask("n", run_id="r1", role="quantifier", about=about | {"criteria": "c2"}),
         "the reply on 'r1' is about other criteria"),
        (ask("n", run_id="r1", role="quantifier", about={"text": "t2", "criteria": "c2"}),
         "about other text and criteria"),
        (ask("n", role="consolidate", about={"list": "l2"}), "about other list"),
        (ask("n", run_id="r1", role="quantifier", repeat=1, about=about), "repeat 1"),
        (ask("n", about=about, **copy | {"variant": "truncate:0.25:0"}), r"\(truncate:0.25:0\)"),
        (ask("n", run_id="r2", role="quantifier", about=about), "run 'r2'"),
    ]:  # fmt: skip
        with pytest.raises(BadRequest, match=told):
            replay.find(request)


@pytest.mark.parametrize(
    "request_",
    [
        ask("b"),  # another repeat
        ask("a", attempt=1),  # a fresh try
        ask("a", parameters={"seed": 2}),
        ask("x"),
        ask("x", run_id="r2", role="quantifier"),
        ask("x", run_id="r1", role="quantifier", repeat=1),
        ask("x", run_id="r1", role="quantifier:repair"),
        ask("x", run_id="r1", role="quantifier", attempt=1),
        ask("x", run_id="", role=""),
    ],
)
async def test_what_was_not_recorded_is_never_guessed(file: Path, request_: Request) -> None:
    recorder = FileRecorder(file)
    recorder.record(ask("a", run_id="r1", role="quantifier"), REPLY)
    recorder.record(ask("b", repeat=1), Reply("b1"))
    with pytest.raises(BadRequest, match=r"rec\.jsonl holds no reply"):
        await ReplayTransport(file).send(request_)


async def test_replies_recorded_elsewhere(file: Path) -> None:
    write(
        file,
        {"run": "r1", "repeat": 0, "text": "first"},
        {"run": "r1", "repeat": 1, "role": "quantifier", "text": "second"},
        {"run": 7, "text": "third"},
    )
    replay = ReplayTransport(file)
    assert (await replay.send(ask(run_id="r1", role="quantifier"))).text == "first"
    assert (await replay.send(ask(run_id="r1", repeat=1, role="quantifier"))).text == "second"
    assert (await replay.send(ask(run_id="7"))).text == "third"
    with pytest.raises(BadRequest):
        await replay.send(ask(run_id="r1", role="quantifier:repair"))


async def test_several_requests_of_one_cell_are_told_apart_by_their_hash(file: Path) -> None:
    # one criterion per call, and a fresh try: same run, repeat and role
    requests = [ask(t, run_id="r", role="q") for t in ("clarity", "depth")]
    requests.append(ask("clarity", run_id="r", role="q", attempt=1))
    recorder = FileRecorder(file)
    for number, request in enumerate(requests):
        recorder.record(request, Reply(str(number)))
    replay = ReplayTransport(file)
    assert [(await replay.send(r)).text for r in requests] == ["0", "1", "2"]
    with pytest.raises(BadRequest):  # which of them is meant cannot be known
        await replay.send(ask("new words", run_id="r", role="q"))


BAD_LINES: list[Any] = [
    "{", "[]", "3", '"text"', "null", {"run": "r"}, {"text": "x"}, {"run": "r", "text": None},
    {"run": "r", "text": 3}, {"run": "r", "repeat": "x", "text": "x"},
    {"run": "r", "repeat": 1.5, "text": "x"}, {"run": "r", "repeat": True, "text": "x"},
    {"run": "r", "repeat": None, "text": "x"}, {"key": 3, "text": "x"}, {"key": "", "text": "x"},
    {"run": "r", "role": 3, "text": "x"}, {"key": "k", "reply": {"text": "x", "usage": []}, "x": 1},
    {"key": "k", "text": "x", "usage": {"requests": "many", "tokens": 3}},
    {"key": "k", "reply": "x"}, "[" * 100_000, '{"run": "r", "text": "x", "n": ' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda v: repr(v)[:40])
def test_a_bad_line_is_named_by_its_number(file: Path, line: Any) -> None:
    write(file, {"run": "a", "text": "ok"}, "", line, {"run": "b", "text": "ok"})
    with pytest.raises(InputError, match=r"rec\.jsonl:3: ") as raised:
        ReplayTransport(file)
    assert "\n" not in str(raised.value)


def test_two_different_replies_for_one_request_are_refused(file: Path) -> None:
    write(file, {"run": "r", "text": "x"}, {"run": "r", "text": "y"})
    with pytest.raises(InputError, match=r":2: a second, different reply"):
        ReplayTransport(file)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xff\xfe{}"])
def test_no_recording(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"rec\.jsonl"):
        ReplayTransport(file)
    with pytest.raises(InputError, match="cannot read"):
        ReplayTransport(file.with_name("absent"))


async def test_separators_inside_strings_and_a_bom_break_no_line(file: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    file.write_text(
        "\ufeff" + json.dumps({"run": "r", "text": text}, ensure_ascii=False) + "\r\n", "utf-8"
    )
    assert (await ReplayTransport(file).send(ask(run_id="r"))).text == text


@pytest.mark.parametrize("read", [ReplayTransport, FileRecorder])
def test_a_line_that_broke_off_is_named(file: Path, read: Callable[[Path], object]) -> None:
    recorder = FileRecorder(file)
    for n in range(2):
        recorder.record(ask(str(n)), Reply(str(n)))
    whole = file.read_bytes()
    second = whole.index(b"\n") + 1
    for cut in range(second + 1, len(whole) - 1):
        file.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"rec\.jsonl:2: ") as raised:
            read(file)
        assert "\n" not in str(raised.value)
        assert file.read_bytes() == whole[:cut]
    file.write_bytes(whole[:-1])  # whole but for its end: nothing is lost
    assert len(ReplayTransport(file)._by_key) == 2
    with pytest.raises(InputError, match=r"rec\.jsonl:2: the last line broke off"):
        FileRecorder(file)


def test_a_file_that_is_no_recording_is_not_touched(file: Path) -> None:
    for content in (b"my notes", b"line\nmy notes", b'{"run": "r", "te', b"\n"):
        file.write_bytes(content)
        with pytest.raises(InputError, match="it is no recording"):
            FileRecorder(file)
        assert file.read_bytes() == content
    with pytest.raises(InputError, match="no file but a folder"):
        FileRecorder(file.parent)


async def test_a_second_session_adds_to_the_first_and_changes_nothing(file: Path) -> None:
    for words in ("first", "second"):
        recorder = FileRecorder(file)
        recorder.record(ask("same"), Reply(words))
        recorder.record(ask(words), Reply(words))
    replay = ReplayTransport(file)
    assert (await replay.send(ask("same"))).text == "first"
    assert (await replay.send(ask("second"))).text == "second"


def test_another_recording_of_the_same_name_has_another_endpoint(tmp_path: Path) -> None:
    endpoints = set()
    for folder, text in [("a", "x"), ("b", "y"), ("c", "x")]:
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder / "rec.jsonl", {"run": "r", "text": text})
        endpoints.add(ReplayTransport(path).endpoint)
    assert len(endpoints) == 2


def test_a_full_disk_ends_the_recording(file: Path) -> None:
    recorder = FileRecorder(file)
    recorder.record(ask("0"), Reply("0"))
    size = file.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))
    try:
        with pytest.raises(StoreError, match=r"rec\.jsonl: cannot write"):
            recorder.record(ask("1"), Reply("1" * 500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    with pytest.raises(StoreError, match=r"rec\.jsonl: cannot write"):
        recorder.record(ask("1"), REPLY)
    assert file.stat().st_size == size  # no half line is left
    FileRecorder(file).record(ask("1"), REPLY)


# ---- Two runs with the same text -----------------------------------------------------------------


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_a_request_of_two_runs_is_found_for_both(file: Path) -> None:
    recorder = FileRecorder(file)
    for run in ("r1", "r2", "r1", "r2"):
        recorder.record(ask("same", run_id=run, role="q"), REPLY)
    recorder.record(ask("same", run_id="r2", role="probe"), REPLY)
    recorder.record(ask("same"), REPLY)  # of no run: the text finds it
    assert [(one["run"], one["role"], "reply" in one) for one in lines(file)] == [
        ("r1", "q", True), ("r2", "q", False), ("r2", "probe", False),
    ]  # fmt: skip
    replay = ReplayTransport(file)
    for run, role in (("r1", "q"), ("r2", "q"), ("r2", "probe")):
        assert await replay.send(ask("same", run_id=run, role=role)) == REPLY
        assert await replay.send(ask("new words", run_id=run, role=role)) == REPLY
    assert await replay.send(ask("same", run_id="r3", role="q")) == REPLY
    for wrong in (("r3", "q"), ("r1", "probe")):
        with pytest.raises(BadRequest):
            await replay.send(ask("new words", run_id=wrong[0], role=wrong[1]))


async def test_of_two_replies_to_one_request_the_first_stands(file: Path) -> None:
    recorder = FileRecorder(file)
    recorder.record(ask("same", run_id="r1"), Reply("first"))
    recorder.record(ask("same", run_id="r2"), Reply("second"))
    replay = ReplayTransport(file)
    for run in ("r1", "r2"):
        assert (await replay.send(ask("same", run_id=run))).text == "first"
        assert (await replay.send(ask("new", run_id=run))).text == "first"


async def test_a_second_session_names_only_what_is_new(file: Path) -> None:
    for runs in (("r1",), ("r1", "r2"), ("r1", "r2")):
        recorder = FileRecorder(file)
        for run in runs:
            recorder.record(ask("same", run_id=run), REPLY)
    assert [one["run"] for one in lines(file)] == ["r1", "r2"]


def test_a_line_without_a_reply_needs_an_earlier_one(file: Path) -> None:
    write(file, {"key": "k", "run": "r"}, {"key": "k", "run": "s", "text": "late"})
    with pytest.raises(InputError, match=r":1: no reply, and none before it"):
        ReplayTransport(file)
    recorder = FileRecorder(file.with_name("own.jsonl"))
    recorder.record(ask("a"), REPLY)
    with file.with_name("own.jsonl").open("a") as more:
        more.write('{"key": "k", "run": "r"}\n')
    with pytest.raises(InputError, match=r":2: no reply, and none before it"):
        FileRecorder(file.with_name("own.jsonl"))  # before anything more is paid for


class Memory(dict[str, dict[str, Any]]):
    """A cache of replies."""

    get_reply = dict[str, dict[str, Any]].get
    put_reply = dict[str, dict[str, Any]].__setitem__


@pytest.mark.parametrize("cached", [True, False])
async def test_two_runs_with_one_text_through_a_client(tmp_path: Path, cached: bool) -> None:
    """What `--record` leaves serves both, also when the cache answered the second of them."""
    file = tmp_path / "rec.jsonl"
    with serve(lambda body, n: f"reply {n}") as server:
        client = Client(
            OpenAITransport("m", base_url=server.base_url, api_key=None),
            cache=Memory() if cached else None,
            recorder=FileRecorder(file),
        )
        for run in ("r1", "r2"):
            await client.complete(ask("same", run_id=run, role="q"))
        await client.close()
        assert server.count == 1 + (not cached)
    replay = Client(ReplayTransport(file))
    for words in ("same", "changed since"):
        for run in ("r1", "r2"):
            assert (await replay.complete(ask(words, run_id=run, role="q"))).text == "reply 0"


@pytest.mark.parametrize("secret", [b"", b"of another store"])
async def test_prompts_with_a_code_of_the_store_are_found_by_their_hash(
    file: Path, secret: bytes
) -> None:
    """As those of critics, which belong to no run, and of copies beside their original."""
    asked = [ask(f"{name} {NONCE}", role="critic") for name in "ab"]
    asked += [ask(f"{name} {NONCE}", run_id="r", role="quantifier") for name in "cd"]
    with serve(lambda body, n: "on " + body["messages"][-1]["content"][0]) as server:
        client = Client(
            OpenAITransport("m", base_url=server.base_url, api_key=None),
            recorder=FileRecorder(file),
            secret=b"of a store",
        )
        for request in asked:
            await client.complete(request)
        await client.close()
    replay = Client(ReplayTransport(file), secret=secret)
    assert [(await replay.complete(one)).text for one in asked] == ["on a", "on b", "on c", "on d"]


# ---- Several recorders --------------------------------------------------------------------------


async def test_recorders_of_one_process_may_record_the_same(file: Path) -> None:
    """As the judges of `verify --probes` do: the first reply stands."""
    first, second = FileRecorder(file), FileRecorder(file.parent / "." / file.name)
    for recorder in (first, second):
        recorder.record(ask("same", run_id="r"), Reply(f"of {recorder is first}"))
    second.record(ask("b"), Reply("b"))
    replay = ReplayTransport(file)
    assert (await replay.send(ask("same"))).text == "of True"
    assert (await replay.send(ask("other words", run_id="r"))).text == "of True"
    assert (await replay.send(ask("b"))).text == "b"


async def test_a_closed_client_that_is_kept_may_go_on(file: Path) -> None:
    """As in a notebook, where the variable lives on."""
    with serve(lambda body, n: f"on {body['messages'][-1]['content']}") as server:
        transport = OpenAITransport("m", base_url=server.base_url, api_key=None)
        client = Client(transport, recorder=FileRecorder(file))
        await client.complete(ask("a"))
        await client.close()
        transport = OpenAITransport("m", base_url=server.base_url, api_key=None)
        again = Client(transport, recorder=client.recorder)
        await again.complete(ask("b"))
        await again.close()
    assert [one["reply"]["text"] for one in lines(file)] == ["on a", "on b"]


def test_a_database_is_not_recorded_into(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE t (x)")
        with pytest.raises(InputError, match="this is a database"):
            FileRecorder(file)
