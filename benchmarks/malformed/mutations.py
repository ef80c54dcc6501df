"""Ways to spoil a reply, each with its known effect on what must be read.

harmless   the same labels
partial    one criterion gets exactly this status, the others keep their labels
fatal      every criterion gets exactly this status
corrected  a second, complete answer follows: its labels count

The effects are written down from the rules (docs/scoring-policy.md), not taken from the code that
reads. Mutations of one slot exclude each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.malformed.draft import MISSING, OFF, PARSE, Draft, other_answer, pick

Change = Callable[[Draft, random.Random], None]


class Mutation(NamedTuple):
    """A change at one of four stages: entries, whole value, text, what stands around it."""

    name: str
    kind: str
    stage: int
    slots: frozenset[str]
    change: Change


TABLE: list[Mutation] = []


def mutation(name: str, kind: str, stage: int, *slots: str) -> Callable[[Change], Change]:
    """Put a change into the table."""

    def add(change: Change) -> Change:
        TABLE.append(Mutation(name, kind, stage, frozenset(slots), change))
        return change

    return add


def _spelling(name: str, change: Callable[[str], str]) -> None:
    @mutation(name, "harmless", 0, "label")
    def spelled(draft: Draft, rng: random.Random) -> None:
        path = pick(draft.paths, rng)
        if isinstance(draft.said.get(path), str):
            draft.said[path] = change(draft.said[path])


_spelling("label in capitals", str.upper)
_spelling("label with a full stop", lambda s: f"{s}.")
_spelling("label in bold", lambda s: f"**{s}**")
_spelling("label in spaces", lambda s: f"  {s}  ")
_spelling("label with underscores", lambda s: s.replace(" ", "_"))
_spelling("label in quotes", lambda s: f"“{s}”")
_spelling("label with a zero-width space", lambda s: f"{s}\u200b")
_spelling(
    "label in full width", lambda s: "".join(chr(ord(c) + 0xFEE0) if c > " " else c for c in s)
)


def _off(name: str, said: object) -> None:
    @mutation(name, "partial", 0, "label")
    def off(draft: Draft, rng: random.Random) -> None:
        path = pick(draft.paths, rng)
        draft.said[path], draft.expect[path] = said, OFF


for _name, _said in (
    ("label of another scale", "Excellent"),
    ("label that hedges", "somewhere in between"),
    ("empty label", ""),
    ("number of another scale", 8500),
    ("half a label", "3.7 or so"),
    ("label as a sentence", "I would say that it is rather good"),
    ("grade", "B-"),
    ("percentage", "99.5%"),
    ("other denominator", "3/17"),
):
    _off(_name, _said)


@mutation("boolean for a label", "partial", 0, "label")
def _boolean(draft: Draft, rng: random.Random) -> None:
    path = pick([p for p in draft.paths if p != "passed"] or ["passed"], rng)
    if path != "passed":
        draft.said[path], draft.expect[path] = rng.random() < 0.5, OFF


@mutation("two labels", "partial", 0, "label")
def _two(draft: Draft, rng: random.Random) -> None:
    path = pick(draft.paths, rng)
    values = draft.leaf[path].accepted_values
    if values:
        draft.said[path], draft.expect[path] = f"{values[0]} or {values[-1]}", OFF


@mutation("null for a label", "partial", 0, "label")
def _null(draft: Draft, rng: random.Random) -> None:
    path = pick(draft.paths, rng)
    draft.said[path], draft.expect[path] = None, MISSING


@mutation("list for a label", "partial", 0, "label")
def _list(draft: Draft, rng: random.Random) -> None:
    path = pick(draft.paths, rng)
    draft.said[path], draft.expect[path] = [draft.said[path]], MISSING


@mutation("rating against the label", "partial", 0, "label", "end")
def _against(draft: Draft, rng: random.Random) -> None:
    path = pick(draft.paths, rng)
    values = draft.leaf[path].accepted_values
    others = [v for v in values if v != draft.said[path]]
    if others:
        draft.entries[path]["rating"] = rng.choice(others)
        draft.expect[path] = PARSE


@mutation("criterion left out", "partial", 0, "label")
def _left_out(draft: Draft, rng: random.Random) -> None:
    if len(draft.paths) == 1:  # {} may be anything
        return
    path = pick(draft.paths, rng)
    draft.entries.pop(path)
    draft.said.pop(path)
    draft.expect[path] = MISSING


@mutation("criteria nobody asked for", "harmless", 1, "extra")
def _extra(draft: Draft, rng: random.Random) -> None:
    draft.extra["humour"] = {"label": "clear"}
    draft.extra["summary"] = "fair, all in all"


@mutation("display names", "harmless", 1, "names")
def _names(draft: Draft, rng: random.Random) -> None:
    for path in draft.paths:
        if "/" not in path:
            draft.names[path] = rng.choice((str.upper, str.title, str.strip))(draft.leaf[path].name)


@mutation("another order", "harmless", 1, "order")
def _order(draft: Draft, rng: random.Random) -> None:
    paths = list(draft.entries)
    rng.shuffle(paths)
    draft.entries = {path: draft.entries[path] for path in paths}


@mutation("list of objects", "harmless", 1, "shape", "extra")
def _as_list(draft: Draft, rng: random.Random) -> None:
    draft.listed = True


@mutation("wrapper", "harmless", 1, "wrapper")
def _wrapper(draft: Draft, rng: random.Random) -> None:
    draft.wrapper = rng.choice(["criteria", "ratings", "evaluation", "output"])


for _style in ("python", "indented", "ascii"):

    def _styled(draft: Draft, rng: random.Random, style: str = _style) -> None:
        draft.style = style

    mutation(f"written as {_style}", "harmless", 1, "style")(_styled)


@mutation("cut off", "cut", 2, "text", "end", "quote", "trailing")
def _cut(draft: Draft, rng: random.Random) -> None:
    if len(draft.text) < 8:
        return
    at = rng.randrange(6, len(draft.text))
    draft.text, draft.finish = draft.text[:at], "length"
    for path in draft.paths:
        if path in draft.ends and draft.ends[path] > at:
            draft.expect[path] = MISSING
        elif (
            path in draft.ends and draft.ends[path] == at and not isinstance(draft.said[path], str)
        ):
            draft.expect[path] = MISSING  # a number may have gone on


def _broken(name: str, change: Callable[[Draft, str, random.Random], str]) -> None:
    """A change of the text just behind a label, after which it is no JSON in any dialect."""

    @mutation(name, "fatal", 2, "text")
    def broken(draft: Draft, rng: random.Random) -> None:
        if draft.ends:
            at = draft.ends[pick(list(draft.ends), rng)]
            draft.text = draft.text[:at] + change(draft, draft.text[at:], rng)
            draft.dead()


_broken(
    "word behind a label", lambda _, rest, rng: rng.choice([" oops", " = 1", "; ", ": 2"]) + rest
)
_broken("string behind a label", lambda _, rest, __: f' "so" {rest}')
_broken("bracket turned", lambda _, rest, __: f"{')' if rest[:1] != ')' else ']'}{rest}")
_broken("NaN", lambda _, rest, __: f', "confidence": NaN{rest}')
_broken("infinite", lambda _, rest, __: f', "confidence": -Infinity{rest}')
_broken("number beyond floats", lambda _, rest, __: f', "confidence": 1e999{rest}')
_broken("5000 digits", lambda _, rest, __: f', "confidence": {"7" * 5000}{rest}')
_broken("too deep", lambda _, rest, __: f', "notes": {"[" * 70}{"]" * 70}{rest}')


def _doubled(name: str, kind: str, member: str) -> None:
    """A key that stands twice with two values, behind a label."""

    @mutation(name, kind, 2, "text")
    def doubled(draft: Draft, rng: random.Random) -> None:
        if draft.ends:
            path = pick(list(draft.ends), rng)
            at = draft.ends[path]
            draft.text = draft.text[:at] + member + draft.text[at:]
            if kind == "partial":
                draft.expect[path] = PARSE


_doubled("key twice", "harmless", ', "other": 1, "other": true')
_doubled("label twice", "partial", ', "label": "another"')


@mutation("trailing commas", "harmless", 2, "commas")
def _commas(draft: Draft, rng: random.Random) -> None:
    if draft.text[-1:] in ("}", "]") and draft.text not in ("{}", "[]"):
        draft.text = f"{draft.text[:-1]},{draft.text[-1]}" if draft.entries else draft.text


@mutation("comment", "harmless", 2, "comment", "end")
def _comment(draft: Draft, rng: random.Random) -> None:
    note = rng.choice(["/* ok */", "// ok\n", "# ok\n"])
    draft.text = draft.text[:1] + note + draft.text[1:]
    draft.ends = {path: end + len(note) for path, end in draft.ends.items()}


BEFORE = {
    "prose before": "Sure! Here is my evaluation of {the work} [1]:\n\n",
    "byte order mark": "\ufeff",
    "blank lines before": "\n\n \t\n",
    "rubric before": '{"clarity": {"accepted_values": ["unclear", "fair", "clear"]}}\n\n',
    "form before": '{"clarity": {"explanation": "<text>", "label": ...}, ...}\n\n',
    "empty thinking": "<think>\n\n</think>\n\n",
}
for _name, _before in BEFORE.items():

    def _prefixed(draft: Draft, rng: random.Random, before: str = _before) -> None:
        draft.text = before + draft.text

    mutation(_name, "harmless", 3, "before", "quote")(_prefixed)


@mutation("draft before", "harmless", 3, "before", "quote")
def _draft_before(draft: Draft, rng: random.Random) -> None:
    draft.text = f"At first: {other_answer(draft, rng)[0]}\nBut then:\n{draft.text}"


@mutation("draft in thinking", "harmless", 3, "before", "quote")
def _thinking(draft: Draft, rng: random.Random) -> None:
    opening = rng.choice(["<think>", ""])
    draft.text = f"{opening}Perhaps {other_answer(draft, rng)[0]}.\n</think>\n{draft.text}"


AFTER = {
    "prose after": "\n\nI hope this helps! Let me know (or not) if it is 1 of 2.",
    "blank lines after": "\n \n\t",
    "rubric after": '\n\nBy {"clarity": {"accepted_values": ["unclear", "fair", "clear"]}}',
    "end mark": "<|im_end|></s>",
    "list in prose after": " as in [1, 2]",
}
for _name, _after in AFTER.items():

    def _suffixed(draft: Draft, rng: random.Random, after: str = _after) -> None:
        draft.text = draft.text + after

    mutation(_name, "harmless", 3, "end", "quote")(_suffixed)


@mutation("code fence", "harmless", 3, "end", "quote")
def _fence(draft: Draft, rng: random.Random) -> None:
    draft.text = f"```{rng.choice(['json', '', 'JSON', 'python'])}\n{draft.text}\n```"


@mutation("tags around", "harmless", 3, "end", "quote")
def _tags(draft: Draft, rng: random.Random) -> None:
    tag = rng.choice(["answer", "json", "tool_call"])
    draft.text = f"<{tag}>{draft.text}</{tag}>"


@mutation("as a JSON string", "harmless", 3, "end", "quote", "before", "text")
def _quoted(draft: Draft, rng: random.Random) -> None:
    draft.text = json.dumps(draft.text)


@mutation("second answer after it", "corrected", 3, "end", "quote", "text")
def _corrected(draft: Draft, rng: random.Random) -> None:
    text, expect = other_answer(draft, rng)
    draft.text, draft.expect = f"{draft.text}\nNo, wait:\n{text}", expect
    draft.said.clear()
    draft.entries.clear()


@mutation("broken second answer after it", "fatal", 3, "end", "quote", "text")
def _broken_after(draft: Draft, rng: random.Random) -> None:
    draft.text += '\nNo, wait: {"clarity": {"label": oops}}'
    draft.dead()


@mutation("lone surrogates", "harmless", 3, "surrogates", "quote")
def _surrogates(draft: Draft, rng: random.Random) -> None:
    draft.text = f"\ud800 {draft.text}"


REFUSALS = (
    "I'm sorry, but I can't assist with that.",
    "抱歉，我无法满足这个请求。",
    "Es tut mir leid, dabei kann ich nicht helfen.",
)


@mutation("refusal", "fatal", 3, "end", "quote", "before", "text")
def _refusal(draft: Draft, rng: random.Random) -> None:
    draft.text = rng.choice(REFUSALS)
    draft.dead("unscored:refusal")


@mutation("words instead", "fatal", 3, "end", "quote", "before", "text")
def _words(draft: Draft, rng: random.Random) -> None:
    draft.text = rng.choice(
        ["", "   ", "The work is quite good: 4 of 5 steps.", "null", "...", "[]"]
    )
    draft.dead()
