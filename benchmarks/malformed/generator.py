"""Malformed replies without end: a correct answer, one to three mutations, the outcome known.

harmless   the same labels
partial    one criterion gets exactly this status, the others keep their labels
fatal      every criterion gets exactly this status
corrected  a second, complete answer follows: its labels count
cut        what stands behind the cut is missing

The effects are written down from the rules (docs/scoring-policy.md), not taken from the code that
reads. Mutations of one slot exclude each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agenteval.records import Criterion
from agenteval.utility.answers import leaves_of
from benchmarks.malformed.corpus import criteria

PARSE, MISSING, OFF = "unscored:parse", "unscored:missing", "unscored:off_scale"
REASONS = (
    "Steps follow.",
    "See {x : x > 0} and [1].",
    "Es ist “gut” – 4 ≠ 5.",
    "",
    "a\\frac{1}{2}",
    'It says "label": "clear".',
    "</div> ```",
    "line one\nline two",
    "步骤清楚 😀",
)


@dataclass
class Draft:
    """A correct answer on its way to a malformed reply; `expect` is what each leaf must give."""

    asked: tuple[Criterion, ...]
    leaf: dict[str, Criterion]
    labels: dict[str, Any] = field(default_factory=dict)  # written as the label, by path
    expect: dict[str, str] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    wrapper: str | None = None
    listed: bool = False
    names: dict[str, str] = field(default_factory=dict)
    style: str = "json"
    text: str = ""
    ends: dict[str, int] = field(default_factory=dict)  # offset behind each label in `text`
    finish: str = "stop"

    @property
    def paths(self) -> list[str]:
        return list(self.leaf)

    def dead(self, status: str = PARSE) -> None:
        """Nothing can be read any more."""
        self.expect = dict.fromkeys(self.leaf, status)

    def settle(self) -> None:
        """A reply that names no criterion has no form; neither has one cut before any answer."""
        cut = self.finish == "length"
        if not self.entries or (cut and all(want == MISSING for want in self.expect.values())):
            self.dead()

    def write(self) -> None:
        """Make the text; tokens stand for the labels first, so that the end of each is known."""
        tokens = {path: f"@{i:03d}@" for i, path in enumerate(self.leaf)}
        members = {path: entry | {"label": tokens[path]} for path, entry in self.entries.items()}
        value: Any = {self.names[p]: entry for p, entry in members.items()} | self.extra
        if self.listed:
            value = [{"criterion": self.names[p], **entry} for p, entry in members.items()]
        template = self._dumped(value if self.wrapper is None else {self.wrapper: value})
        quoted = {path: self._dumped(token) for path, token in tokens.items()}
        self.text, behind = "", 0
        for at, path in sorted((template.index(quoted[path]), path) for path in self.entries):
            self.text += template[behind:at] + self._dumped(self.labels[path])
            self.ends[path] = len(self.text)
            behind = at + len(quoted[path])
        self.text += template[behind:]

    def _dumped(self, value: Any) -> str:
        if self.style == "python":
            return repr(value)
        indent = 2 if self.style == "indented" else None
        return json.dumps(value, ensure_ascii=self.style == "ascii", indent=indent)


def start(rng: random.Random) -> Draft:
    """A correct answer on one to four criteria."""
    asked = tuple(rng.sample(list(criteria().values()), rng.randint(1, 4)))
    draft = Draft(asked, dict(leaves_of(asked)))
    for path, leaf in draft.leaf.items():
        label = right_label(leaf, rng)
        numeric = leaf.scale == "numeric"
        draft.labels[path] = float(label) if numeric else label
        draft.expect[path] = f"{float(label):g}" if numeric else label
        draft.entries[path] = {"explanation": rng.choice(REASONS)}
        draft.names[path] = path
    return draft


def right_label(leaf: Criterion, rng: random.Random) -> str:
    """An accepted value, or a number in the range."""
    if leaf.numeric_range is not None:
        low, high = sorted(leaf.numeric_range)
        return str(rng.randint(int(low), int(high)))
    return rng.choice(leaf.accepted_values)


def other_answer(draft: Draft, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Another answer in JSON, and what it would give."""
    value: dict[str, Any] = {}
    expect = {}
    for path, leaf in draft.leaf.items():
        label = right_label(leaf, rng)
        numeric = leaf.scale == "numeric"
        value[path] = float(label) if numeric else {"label": label}
        expect[path] = f"{float(label):g}" if numeric else label
    return json.dumps(value), expect


# -- mutations -------------------------------------------------------------------------------------

Change = Callable[[Draft, random.Random], None]


class Mutation(NamedTuple):
    """A change at one of four stages: entries, whole value, text, text around it."""

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
        path = rng.choice(draft.paths)
        if isinstance(draft.labels.get(path), str):
            draft.labels[path] = change(draft.labels[path])


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


def _constant(name: str, label: object, status: str = OFF) -> None:
    @mutation(name, "partial", 0, "label")
    def replaced(draft: Draft, rng: random.Random) -> None:
        path = rng.choice(draft.paths)
        draft.labels[path], draft.expect[path] = label, status


_constant("label of another scale", "Excellent")
_constant("label that hedges", "somewhere in between")
_constant("empty label", "")
_constant("number of another scale", 8500)
_constant("half a label", "3.7 or so")
_constant("label as a sentence", "I would say that it is rather good")
_constant("grade", "B-")
_constant("percentage", "99.5%")
_constant("other denominator", "3/17")


@mutation("boolean for a label", "partial", 0, "label")
def _boolean(draft: Draft, rng: random.Random) -> None:
    path = rng.choice([p for p in draft.leaf if p != "passed"] or ["passed"])
    if path != "passed":
        draft.labels[path], draft.expect[path] = rng.random() < 0.5, OFF


@mutation("two labels", "partial", 0, "label")
def _two(draft: Draft, rng: random.Random) -> None:
    path = rng.choice(draft.paths)
    values = draft.leaf[path].accepted_values
    if values:
        draft.labels[path], draft.expect[path] = f"{values[0]} or {values[-1]}", OFF


_constant("null for a label", None, MISSING)


@mutation("list for a label", "partial", 0, "label")
def _list(draft: Draft, rng: random.Random) -> None:
    path = rng.choice(draft.paths)
    draft.labels[path], draft.expect[path] = [draft.labels[path]], MISSING


@mutation("rating against the label", "partial", 0, "label", "end")
def _against(draft: Draft, rng: random.Random) -> None:
    path = rng.choice(draft.paths)
    different = [v for v in draft.leaf[path].accepted_values if v != draft.labels[path]]
    if different:
        draft.entries[path]["rating"] = rng.choice(different)
        draft.expect[path] = PARSE


@mutation("criterion left out", "partial", 0, "label")
def _left_out(draft: Draft, rng: random.Random) -> None:
    if len(draft.leaf) == 1:  # {} may be anything
        return
    path = rng.choice(draft.paths)
    del draft.entries[path], draft.labels[path]
    draft.expect[path] = MISSING


@mutation("criteria nobody asked for", "harmless", 1, "extra")
def _extra(draft: Draft, rng: random.Random) -> None:
    draft.extra = {"humour": {"label": "clear"}, "summary": "fair, all in all"}


@mutation("display names", "harmless", 1, "names")
def _names(draft: Draft, rng: random.Random) -> None:
    for path, leaf in draft.leaf.items():
        if "/" not in path:
            draft.names[path] = rng.choice((str.upper, str.title, str.strip))(leaf.name)


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

    @mutation(f"written as {_style}", "harmless", 1, "style")
    def _styled(draft: Draft, rng: random.Random, style: str = _style) -> None:
        draft.style = style


@mutation("cut off", "cut", 2, "text", "end", "quote", "trailing")
def _cut(draft: Draft, rng: random.Random) -> None:
    if len(draft.text) < 8:
        return
    at = rng.randrange(6, len(draft.text))
    draft.text, draft.finish = draft.text[:at], "length"
    for path, end in draft.ends.items():
        # A number that ends at the cut may have gone on.
        if end > at or (end == at and not isinstance(draft.labels[path], str)):
            draft.expect[path] = MISSING


def _behind_label(
    name: str, insert: Callable[[str, random.Random], str], kind: str = "fatal"
) -> None:
    """Put text behind a label. `insert` gets the text that follows there."""

    @mutation(name, kind, 2, "text")
    def inserted(draft: Draft, rng: random.Random) -> None:
        if not draft.ends:
            return
        path = rng.choice(list(draft.ends))
        at = draft.ends[path]
        following = draft.text[at:]
        draft.text = draft.text[:at] + insert(following, rng) + following
        if kind == "fatal":
            draft.dead()
        elif kind == "partial":
            draft.expect[path] = PARSE


_behind_label("word behind a label", lambda _, rng: rng.choice([" oops", " = 1", "; ", ": 2"]))
_behind_label("string behind a label", lambda _, __: ' "so" ')
_behind_label("bracket turned", lambda text, _: ")" if text[:1] != ")" else "]")
_behind_label("NaN", lambda _, __: ', "confidence": NaN')
_behind_label("infinite", lambda _, __: ', "confidence": -Infinity')
_behind_label("number beyond floats", lambda _, __: ', "confidence": 1e999')
_behind_label("5000 digits", lambda _, __: f', "confidence": {"7" * 5000}')
_behind_label("too deep", lambda _, __: f', "notes": {"[" * 70}{"]" * 70}')
_behind_label("key twice", lambda _, __: ', "other": 1, "other": true', "harmless")
_behind_label("label twice", lambda _, __: ', "label": "another"', "partial")


@mutation("trailing commas", "harmless", 2, "commas")
def _commas(draft: Draft, rng: random.Random) -> None:
    if draft.entries and draft.text[-1:] in ("}", "]") and draft.text not in ("{}", "[]"):
        draft.text = f"{draft.text[:-1]},{draft.text[-1]}"


@mutation("comment", "harmless", 2, "comment", "end")
def _comment(draft: Draft, rng: random.Random) -> None:
    note = rng.choice(["/* ok */", "// ok\n", "# ok\n"])
    draft.text = draft.text[:1] + note + draft.text[1:]
    draft.ends = {path: end + len(note) for path, end in draft.ends.items()}


def _around(before: dict[str, str], after: dict[str, str]) -> None:
    for name in before | after:
        slot = "before" if name in before else "end"

        @mutation(name, "harmless", 3, slot, "quote")
        def framed(draft: Draft, rng: random.Random, name: str = name) -> None:
            draft.text = before.get(name, "") + draft.text + after.get(name, "")


_around(
    {
        "prose before": "Sure! Here is my evaluation of {the work} [1]:\n\n",
        "byte order mark": "\ufeff",
        "blank lines before": "\n\n \t\n",
        "rubric before": '{"clarity": {"accepted_values": ["unclear", "fair", "clear"]}}\n\n',
        "form before": '{"clarity": {"explanation": "<text>", "label": ...}, ...}\n\n',
        "empty thinking": "<think>\n\n</think>\n\n",
    },
    {},
)


@mutation("draft before", "harmless", 3, "before", "quote")
def _draft_before(draft: Draft, rng: random.Random) -> None:
    draft.text = f"At first: {other_answer(draft, rng)[0]}\nBut then:\n{draft.text}"


@mutation("draft in thinking", "harmless", 3, "before", "quote")
def _thinking(draft: Draft, rng: random.Random) -> None:
    opening = rng.choice(["<think>", ""])
    draft.text = f"{opening}Perhaps {other_answer(draft, rng)[0]}.\n</think>\n{draft.text}"


_around(
    {},
    {
        "prose after": "\n\nI hope this helps! Let me know (or not) if it is 1 of 2.",
        "blank lines after": "\n \n\t",
        "rubric after": '\n\nBy {"clarity": {"accepted_values": ["unclear", "fair", "clear"]}}',
        "end mark": "<|im_end|></s>",
        "list in prose after": " as in [1, 2]",
    },
)


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
    text, draft.expect = other_answer(draft, rng)
    draft.text = f"{draft.text}\nNo, wait:\n{text}"
    draft.labels.clear()
    draft.entries.clear()


@mutation("broken second answer after it", "fatal", 3, "end", "quote", "text")
def _broken_after(draft: Draft, rng: random.Random) -> None:
    draft.text += '\nNo, wait: {"clarity": {"label": oops}}'
    draft.dead()


@mutation("lone surrogates", "harmless", 3, "surrogates", "quote")
def _surrogates(draft: Draft, rng: random.Random) -> None:
    draft.text = f"\ud800 {draft.text}"


def _instead(name: str, status: str, *texts: str) -> None:
    @mutation(name, "fatal", 3, "end", "quote", "before", "text")
    def replaced(draft: Draft, rng: random.Random) -> None:
        draft.text = rng.choice(texts)
        draft.dead(status)


_instead(
    "refusal",
    "unscored:refusal",
    "I'm sorry, but I can't assist with that.",
    "抱歉，我无法满足这个请求。",
    "Es tut mir leid, dabei kann ich nicht helfen.",
)
_instead(
    "words instead", PARSE, "", "   ", "The work is quite good: 4 of 5 steps.", "null", "...", "[]"
)


# -- replies ---------------------------------------------------------------------------------------


class Generated(NamedTuple):
    """A reply, the outcome of each leaf, and its mutations."""

    reply: str
    finish: str
    asked: tuple[Criterion, ...]
    expect: dict[str, str]
    mutations: tuple[str, ...]
    kinds: tuple[str, ...]


def generate(seed: int) -> Generated:
    """The reply of a seed: always the same."""
    rng = random.Random(seed)
    draft = start(rng)
    chosen: list[Mutation] = []
    for _ in range(rng.randint(1, 3)):
        drawn = rng.choice(TABLE)
        if not any(drawn.slots & m.slots for m in chosen):
            chosen.append(drawn)
    chosen.sort(key=lambda m: m.stage)
    for change in (m.change for m in chosen if m.stage < 2):
        change(draft, rng)
    draft.settle()
    draft.write()
    for late in (m for m in chosen if m.stage >= 2):
        late.change(draft, rng)
        if late.kind == "cut":
            draft.settle()
    names, kinds = tuple(m.name for m in chosen), tuple(m.kind for m in chosen)
    return Generated(draft.text, draft.finish, draft.asked, draft.expect, names, kinds)


def replies(count: int, seed: int = 0) -> Iterator[Generated]:
    """`count` replies from one seed on."""
    for number in range(count):
        yield generate(seed * 1_000_003 + number)
