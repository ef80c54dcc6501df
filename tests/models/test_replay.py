"""Recordings: found by hash or by cell, never guessed; read whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import BadRequest, InputError
from agenteval.models.replay import ReplayTransport
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage


def ask(text: str = "hello", **more: Any) -> Request:
    return Request(messages=({"role": "user", "content": text},), **more)


def write(path: Path, *entries: Any, end: str = "\n") -> Path:
    lines = [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in entries]
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def record(path: Path, request: Request, reply: Reply) -> None:
    """Append a line as `agenteval export --replies` writes it."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({**request.described(), "reply": reply.to_json()}) + "\n")


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
    record(file, ask("a", run_id="r1", role="quantifier"), REPLY)
    record(file, ask("b", repeat=1), Reply("b1"))
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
    record(file, ask("a", run_id="r1", role="quantifier", about=about), REPLY)
    record(file, ask("b", about=about | {"text": "t2"}, **copy), Reply("of the copy"))
    record(file, ask("c", role="consolidate", about={"list": "l1"}), Reply("ideas"))
    replay = ReplayTransport(file)
    assert replay.copied == {("r1", "pad:0.25:0")}
    found = replay.find(ask("new words", run_id="r1", role="quantifier", about=about))
    assert found == REPLY
    assert replay.find(ask("new", about=about | {"text": "t2"}, **copy)).text == "of the copy"
    assert replay.find(ask("new", role="consolidate", about={"list": "l1"})).text == "ideas"
    for request, told in [
        (
            ask("n", run_id="r1", role="quantifier", about=about | {"criteria": "c2"}),
            "the reply on 'r1' is about other criteria",
        ),
        (
            ask("n", run_id="r1", role="quantifier", about={"text": "t2", "criteria": "c2"}),
            "about other text and criteria",
        ),
        (ask("n", role="consolidate", about={"list": "l2"}), "about other list"),
        (ask("n", run_id="r1", role="quantifier", repeat=1, about=about), "repeat 1"),
        (ask("n", about=about, **copy | {"variant": "truncate:0.25:0"}), r"\(truncate:0.25:0\)"),
        (ask("n", run_id="r2", role="quantifier", about=about), "run 'r2'"),
    ]:
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
    record(file, ask("a", run_id="r1", role="quantifier"), REPLY)
    record(file, ask("b", repeat=1), Reply("b1"))
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
    for number, request in enumerate(requests):
        record(file, request, Reply(str(number)))
    replay = ReplayTransport(file)
    assert [(await replay.send(r)).text for r in requests] == ["0", "1", "2"]
    with pytest.raises(BadRequest):  # which of them is meant cannot be known
        await replay.send(ask("new words", run_id="r", role="q"))


BAD_LINES: list[Any] = [
    "{",
    "[]",
    "3",
    '"text"',
    "null",
    {"run": "r"},
    {"text": "x"},
    {"run": "r", "text": None},
    {"run": "r", "text": 3},
    {"run": "r", "repeat": "x", "text": "x"},
    {"run": "r", "repeat": 1.5, "text": "x"},
    {"run": "r", "repeat": True, "text": "x"},
    {"run": "r", "repeat": None, "text": "x"},
    {"key": 3, "text": "x"},
    {"key": "", "text": "x"},
    {"run": "r", "role": 3, "text": "x"},
    {"key": "k", "reply": {"text": "x", "usage": []}, "x": 1},
    {"key": "k", "text": "x", "usage": {"requests": "many", "tokens": 3}},
    {"key": "k", "reply": "x"},
    "[" * 100_000,
    '{"run": "r", "text": "x", "n": ' + "9" * 5000 + "}",
]


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


def test_another_recording_of_the_same_name_has_another_endpoint(tmp_path: Path) -> None:
    endpoints = set()
    for folder, text in [("a", "x"), ("b", "y"), ("c", "x")]:
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder / "rec.jsonl", {"run": "r", "text": text})
        endpoints.add(ReplayTransport(path).endpoint)
    assert len(endpoints) == 2


# ---- Two runs with the same text -----------------------------------------------------------------


async def test_a_request_of_two_runs_is_found_for_both(file: Path) -> None:
    first = ask("same", run_id="r1", role="q")
    record(file, first, REPLY)
    with file.open("a", encoding="utf-8") as stream:
        for role in ("q", "probe"):
            second = ask("same", run_id="r2", role=role)
            stream.write(json.dumps(second.described()) + "\n")
    replay = ReplayTransport(file)
    for run, role in (("r1", "q"), ("r2", "q"), ("r2", "probe")):
        assert await replay.send(ask("same", run_id=run, role=role)) == REPLY
        assert await replay.send(ask("new words", run_id=run, role=role)) == REPLY
    assert await replay.send(ask("same", run_id="r3", role="q")) == REPLY
    for wrong in (("r3", "q"), ("r1", "probe")):
        with pytest.raises(BadRequest):
            await replay.send(ask("new words", run_id=wrong[0], role=wrong[1]))


async def test_of_two_replies_to_one_request_the_first_stands(file: Path) -> None:
    record(file, ask("same", run_id="r1"), Reply("first"))
    record(file, ask("same", run_id="r2"), Reply("second"))
    replay = ReplayTransport(file)
    for run in ("r1", "r2"):
        assert (await replay.send(ask("same", run_id=run))).text == "first"
        assert (await replay.send(ask("new", run_id=run))).text == "first"


def test_a_line_without_a_reply_needs_an_earlier_one(file: Path) -> None:
    write(file, {"key": "k", "run": "r"}, {"key": "k", "run": "s", "text": "late"})
    with pytest.raises(InputError, match=r":1: no reply, and none before it"):
        ReplayTransport(file)
