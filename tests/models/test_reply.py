"""Replies as weak models write them, each with the value a careful reader would take, or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import ReplyError
from agenteval.models.reply import declines, parse_reply

NESTED: Any = 1
for _ in range(64):
    NESTED = [NESTED]

NO = object()  # no value: a ReplyError
GOOD, POOR = {"clarity": "good"}, {"clarity": "poor"}

# (reply, value, rung)
CORPUS: list[tuple[str, Any, str]] = [
    # exactly JSON
    ('{"clarity": "good"}', GOOD, "json"),
    ('  \n{"clarity": "good"}\n\n', GOOD, "json"),
    ('\ufeff{"clarity": "good"}', GOOD, "json"),
    ('\n\ufeff {"clarity": "good"}', GOOD, "json"),
    (
        '[{"criterion": "clarity", "label": "good"}]',
        [{"criterion": "clarity", "label": "good"}],
        "json",
    ),
    (
        '{"a": {"b": [1, 2.5, -3e2, true, false, null, ""]}}',
        {"a": {"b": [1, 2.5, -300.0, True, False, None, ""]}},
        "json",
    ),
    ('{"score": true}', {"score": True}, "json"),  # not 1
    ('{"a": "\\u00e9\\ud83d\\ude00\\n"}', {"a": "é😀\n"}, "json"),
    ('{"a": "\\ud800"}', {"a": "\ufffd"}, "json"),
    ('{"\\udfff": "x"}', {"\ufffd": "x"}, "json"),
    ('{"a": 1, "a": 1}', {"a": 1}, "json"),  # twice the same is no conflict
    ("{}", {}, "json"),
    ("[]", [], "json"),
    # fenced
    ('```json\n{"clarity": "good"}\n```', GOOD, "fenced"),
    ('```\n{"clarity": "good"}\n```', GOOD, "fenced"),
    ('Here you are:\n\n```JSON\n{"clarity": "good"}\n```\nHope it helps!', GOOD, "fenced"),
    ('```json {"clarity": "good"} ```', GOOD, "fenced"),
    ('```json\n\n  {"clarity": "good"}\n\n```', GOOD, "fenced"),
    (
        '```json\n{"clarity": "poor"}\n```\nNo, better:\n```json\n{"clarity": "good"}\n```',
        GOOD,
        "fenced",
    ),
    ('```python\nx = [1, 2]\n```\n```json\n{"clarity": "good"}\n```', GOOD, "fenced"),
    ('```json\n{"a": "```"}\n```', {"a": "```"}, "fenced"),
    ('```json\n{"clarity": "good"}', GOOD, "buried"),  # the fence was not closed
    # in prose
    ('Sure! {"clarity": "good"}', GOOD, "buried"),
    ('{"clarity": "good"} I hope that helps.', GOOD, "buried"),
    ('My grade: {"clarity": "good"}.', GOOD, "buried"),
    ('**Answer:** `{"clarity": "good"}`', GOOD, "buried"),
    ('<think>It is fine.</think>\n{"clarity": "good"}', GOOD, "buried"),
    ('<think>{"clarity": "poor"}?</think>\n{"clarity": "good"}', GOOD, "buried"),
    ('The set {x : x > 0} is open. {"clarity": "good"}', GOOD, "buried"),
    ('By [Smith, 2019] and f: {0, 1} -> R: {"clarity": "good"}', GOOD, "buried"),
    ('In \\frac{1}{2} of the cases. {"clarity": "good"}', GOOD, "buried"),
    ('(see [1]) {"clarity": "good"}', GOOD, "buried"),
    ('[Note: my answer is {"clarity": "good"}]', GOOD, "buried"),
    ('{"clarity": "good"}\n\n{"clarity": "good"}', GOOD, "buried"),
    ('Don\'t worry, it\'s here: {"clarity": "good"}', GOOD, "buried"),
    # two values: the last one, the first may be quoted
    ('The rubric {"clarity": "poor"} asks for much.\n{"clarity": "good"}', GOOD, "buried"),
    ('{"clarity": "poor"}\nOn second thoughts:\n{"clarity": "good"}', GOOD, "buried"),
    ('```json\n{"clarity": "poor"}\n```\nFinal: {"clarity": "good"}', GOOD, "buried"),
    ('{"clarity": "poor"}{"clarity": "good"}', GOOD, "buried"),
    ("{\"clarity\": \"poor\"} or {'clarity': 'good'}", GOOD, "loose"),
    # Python and other dialects
    ("{'clarity': 'good'}", GOOD, "loose"),
    ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}, "loose"),
    ('{"clarity": "good",}', GOOD, "loose"),
    ('["a", "b",]', ["a", "b"], "loose"),
    ('{"a": ("x", "y")}', {"a": ["x", "y"]}, "loose"),
    ('{"a": range(1, 101)}', {"a": {"range": [1, 100]}}, "loose"),
    ('{"a": range(5)}', {"a": {"range": [0, 4]}}, "loose"),
    ('{"a": list(range(0, 11)), "b": 1}', {"a": {"range": [0, 10]}, "b": 1}, "loose"),
    ('{"a": list(range(-2,3))}', {"a": {"range": [-2, 2]}}, "loose"),
    ('{"a": (range(1, 4), "x")}', {"a": [{"range": [1, 3]}, "x"]}, "loose"),
    ('{"clarity": "good" // because it is clear\n}', GOOD, "loose"),
    ('{"clarity": "good" # clear\n}', GOOD, "loose"),
    ('{/* the grade */ "clarity": "good"}', GOOD, "loose"),
    ('{"a": "two\nlines"}', {"a": "two\nlines"}, "loose"),
    ('{"a": "tab\there"}', {"a": "tab\there"}, "loose"),
    ('{"a": "\\(x^2\\) and \\sqrt{2}"}', {"a": "\\(x^2\\) and \\sqrt{2}"}, "loose"),
    ("{'a': 'it\\'s'}", {"a": "it's"}, "loose"),
    ('{"a": .5, "b": 5.}', {"a": 0.5, "b": 5.0}, "loose"),
    ('```json\n{"clarity": "good",}\n```', GOOD, "loose"),
    ("Answer: {'clarity': \"good\"}", GOOD, "loose"),
    # broken off
    ('{"clarity": "good"', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": "fa', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": 1', GOOD, "salvaged"),  # 1 may have become 10
    ('{"clarity": "good", "depth": tru', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": -', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": 1e', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": range(1, 1', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": {', GOOD, "salvaged"),
    ('{"clarity": "good", "depth": [1, 2', {"clarity": "good", "depth": [1]}, "salvaged"),
    ('{"clarity": "good", "dep', GOOD, "salvaged"),
    ('{"clarity": "good", "depth"', GOOD, "salvaged"),
    ('{"a": {"explanation": "x", "label": "go', {"a": {"explanation": "x"}}, "salvaged"),
    (
        '[{"id": "a", "label": "x"}, {"id": "b", "la',
        [{"id": "a", "label": "x"}, {"id": "b"}],
        "salvaged",
    ),
    ('```json\n{"clarity": "good", "depth": "f', GOOD, "salvaged"),
    ('Draft: {"clarity": "poor"}\nFinal: {"clarity": "good", "depth": "f', GOOD, "salvaged"),
    ('{"clarity": "good"} as in [3, 4', GOOD, "buried"),  # a bracket of prose broke off
    ('{"clarity": "good"}\nDone [', GOOD, "buried"),
    # no value
    ("", NO, ""),
    ("   \n", NO, ""),
    ("\ufeff", NO, ""),
    ("good", NO, ""),
    ("42", NO, ""),
    ('"good"', NO, ""),
    ("null", NO, ""),
    ("I cannot grade this.", NO, ""),
    ("clarity: good", NO, ""),
    ("Score: 5/5 [very good]", NO, ""),
    ("{", NO, ""),
    ("[", NO, ""),
    ("{{{{", NO, ""),
    ("}{", NO, ""),
    ("{]", NO, ""),
    ("Text with { and } but nothing", NO, ""),
    ("```json\n```", NO, ""),
    ('{"cla', NO, ""),
    ('{"clarity": "go', NO, ""),
    ('{"clarity": go}', NO, ""),
    ('{"clarity" "good"}', NO, ""),
    ("{clarity: good}", NO, ""),
    # never a wrong value
    ('{"a": NaN}', NO, ""),
    ('{"a": Infinity}', NO, ""),
    ('{"a": -Infinity}', NO, ""),
    ('{"a": 1e999}', NO, ""),
    ('{"a": -1e999}', NO, ""),
    ('{"a": ' + "9" * 400 + "}", NO, ""),
    ('{"a": ' + "9" * 5000 + "}", NO, ""),
    ('{"clarity": "good", "clarity": "poor"}', NO, ""),
    ('{"a": 1, "a": true}', NO, ""),
    ('{"a": {"b": 1, "b": 2}, "c": {"d": 3}}', NO, ""),
    ("{'a': 'x', 'a': 'y'}", NO, ""),
    ('{"a": 1/2}', NO, ""),
    ('{"a": 3-4}', NO, ""),
    ('{"a": 007}', NO, ""),
    ('{"a": 50,000}', NO, ""),
    ("[50,000]", NO, ""),
    ('{"a": 10%}', NO, ""),
    ('{"a": 5 of 10}', NO, ""),
    ('{"a": 1_000}', NO, ""),
    ('{"a": 0x10}', NO, ""),
    ('{"a": +5}', NO, ""),
    ('{"a": 1e5x}', NO, ""),
    ('{"a": yes}', NO, ""),
    ('{"a": "He said "no" to it", "label": "good"}', NO, ""),
    ('{"clarity": oops, "note": {"clarity": "poor"}}', NO, ""),  # an inner object is no answer
    ('{"clarity": oops, "note": {"clarity": "poor"}', NO, ""),
    ('{"a": {"clarity": "poor"} "b": 1}', NO, ""),
    (
        '{"clarity": "poor"}\nFinal: {"clarity": "go',
        NO,
        "",
    ),  # the answer broke off; that was a draft
    ('Rubric: {"clarity": "poor"}\n{"cl', NO, ""),
    ('Rubric: {"clarity": "poor"}\n[{"cl', NO, ""),
    ("[" * 65 + "1" + "]" * 65, NO, ""),
    ('{"a":' * 65 + "1" + "}" * 65, NO, ""),
    # a broken rubric before a whole answer
    ('{"clarity": ..., "depth": ...}\n{"clarity": "good"}', GOOD, "buried"),
    ('Form: {"clarity": <label>}\n\n{"clarity": "good"}', GOOD, "buried"),
    ('{"clarity": "good\n\nSorry, again:\n{"clarity": "good"}', NO, ""),  # inside an open string
    ("[" * 64 + "1" + "]" * 64, NESTED, "json"),
]


@pytest.mark.parametrize(("text", "value", "rung"), CORPUS, ids=[repr(c[0])[:60] for c in CORPUS])
def test_corpus(text: str, value: Any, rung: str) -> None:
    if value is NO:
        with pytest.raises(ReplyError) as raised:
            parse_reply(text)
        assert str(raised.value)
        return
    parsed = parse_reply(text)
    assert (parsed.value, parsed.rung) == (value, rung)
    assert repr(parsed.value) == repr(value)  # true is not 1, 1 is not 1.0


# ---- Acceptance ----------------------------------------------------------------------------------


def has_label(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("clarity"), str)


def test_what_is_not_accepted_is_passed_over() -> None:
    rubric = '{"clarity": ["poor", "good"]}'
    assert parse_reply(f'{{"clarity": "good"}}\nby {rubric}', has_label).value == GOOD
    assert parse_reply(f"```json\n{rubric}\n```\nso {{'clarity': 'good'}}", has_label).value == GOOD
    with pytest.raises(ReplyError, match="not in the form"):
        parse_reply(rubric, has_label)
    with pytest.raises(ReplyError, match="broke off"):
        parse_reply('{"clarity": "good"} {"clarity": ["po', has_label)


# ---- Truncation ----------------------------------------------------------------------------------

WHOLE: dict[str, Any] = {
    "clarity": {"explanation": 'Steps 1–3 "work": {x} [y], \\(a\\), 😀.', "label": "mostly clear"},
    "count": {"explanation": "", "label": 12, "probabilities": {"1": 0.25, "12": 7.5e-1}},
    "flags": [True, None, -31, "it's\nhere", [], {}],
    "last": False,
}


def is_part(part: Any, whole: Any) -> bool:
    """`part` is `whole` with members missing, from the end of lists; no value differs."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(k in whole and is_part(v, whole[k]) for k, v in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    return type(part) is type(whole) and bool(part == whole)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("around", ["{}", "Here:\n```json\n{}\n```", "Well, {} is it."])
def test_cut_anywhere_gives_fewer_members_never_other_ones(
    indent: int | None, ascii_only: bool, around: str
) -> None:
    written = json.dumps(WHOLE, indent=indent, ensure_ascii=ascii_only)
    text = around.replace("{}", written)
    data = text.encode()
    # from here on the first explanation is complete, so something must be kept
    enough = data.index(b"label")
    for cut in range(len(data)):
        prefix = data[:cut].decode("utf-8", "replace")  # as a stream is cut
        try:
            assert is_part(parse_reply(prefix).value, WHOLE), prefix
        except ReplyError:
            assert cut <= enough
    assert parse_reply(text).value == WHOLE


@pytest.mark.parametrize("first", ['{"clarity": "poor"}', '```json\n{"clarity": "poor"}\n```'])
def test_once_the_answer_has_begun_a_quoted_rubric_is_never_taken_for_it(first: str) -> None:
    answer = '{"clarity": "good", "depth": "fair"}'
    for cut in range(1, len(answer) + 1):
        try:
            value = parse_reply(f"{first}\nMy answer:\n{answer[:cut]}").value
        except ReplyError:
            continue
        if cut == 1:  # a lone bracket is not yet an answer
            continue
        assert value.get("clarity") == "good", cut


# ---- Any value, any text -------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
TOP = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


def same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)


@given(TOP, st.sampled_from([None, 1]), st.booleans())
def test_every_json_value_comes_back(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    parsed = parse_reply(text)
    assert parsed.rung == "json"
    assert same(parsed.value, value)


@given(TOP.filter(bool))
def test_every_python_literal_comes_back(value: Any) -> None:
    text = repr(value)
    parsed = parse_reply(f"Here it is: {text}\nDone.")
    # Python writes \x.. escapes, which JSON does not know
    if "\\x" not in text and "\\U" not in text and "\\u" not in text:
        assert same(parsed.value, value)


def test_a_reply_without_bounds_is_refused() -> None:
    with pytest.raises(ReplyError, match="2000001 characters"):
        parse_reply("x" * 2_000_001)
    with pytest.raises(ReplyError, match="more than 20000 values"):
        parse_reply("{} " * 20_002)


# ---- Which texts decline: only short ones that say so at the start -------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot rate this.",
        "I won’t answer.",
        "I am not able to provide a score.",
        "I have to decline.",
        "Ich kann diesen Text nicht bewerten.",
        "Je ne peux pas évaluer ce texte.",
        "Lo siento, no puedo evaluar esto.",
        "Não posso avaliar isto.",
        "Non posso valutare questo.",
        "Dat kan ik helaas niet beoordelen.",
        "Nie mogę tego ocenić.",
        "Я не могу это оценить.",
        "对不起，我不能回答。",
        "申し訳ございませんが、評価できません。",
        "죄송합니다. 평가할 수 없습니다.",
    ],
)
def test_refusals(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The answer cannot be right.",
        "I'm sorry to say that the proof is wrong.",
        "It is clear.",
        "I can grade this: fair.",
        "The student cannot assist here" + "." * 2000,
        "x" * 301 + " I cannot help with that.",
        "Sorry!",
        "We cannot divide by zero.",
    ],
)
def test_other_texts(text: str) -> None:
    assert not declines(text)
