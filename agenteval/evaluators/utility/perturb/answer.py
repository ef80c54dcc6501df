"""drop_answer: the statements of the final answer, wherever the judge can read them.

The main statement is found by the first of these rules that fits, each time its last sentence:

1. a sentence with \\boxed{...};
2. one that is labelled: "Answer: 35", "Final answer = ...", "The answer is ...";
3. in the last paragraph of the system that has a number: one with a number that concludes: it
   begins with So, Therefore, Thus, Hence, Altogether, In total, Finally, with "The count is" or
   "Average speed:" and the like;
4. in the same paragraph, the last sentence with a number;
5. without any number: the last sentence of the last turn that is no greeting or signature.

With it go all sentences that state the same answer: labelled or boxed ones, conclusions with the
value near their beginning, those that end in it as a result ("= 36.", "the count is 36."), and what
[final output] repeats. Other mentions of the value stay and are counted in `detail`; tool output
always stays. What these rules take for the answer of a letter is only its last fact with a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, nothing, removal
from agenteval.evaluators.utility.perturb.layout import Layout

_BOXED = re.compile(r"\\boxed\s*\{")
_LABEL = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore),?\s+)?(?:(?:the|my|our)\s+)?(?:final\s+|correct\s+)?"
    r"(?:answer|result|solution)s?\W{0,4}(?:\s*[:=]|\s+(?:is|are)\b(?=.*[\dπ√]))",
    re.I,
)
_NAMES = (
    r"(?:count|total|sum|number|numbers|value|area|probability|product|length|speed|distance|mean"
    r"|average|remainder|minimum|maximum|price|cost|terms|pairs|ways)"
)
_CONCLUDES = re.compile(
    r"\W*(?:so\b(?!\s+(?:far|that|many|much)\b)"
    r"|(?:therefore|thus|hence|altogether|in total|in all|finally|in conclusion|consequently"
    r"|overall)\b"
    rf"|(?:(?:the|their|its|my|our)\s+)?(?:\w+\s+){{0,3}}{_NAMES}\b"
    r"(?:[^.:=]{0,40}?\s(?:is|are|equals)\b|(?:\s+of\b[^.:=]{1,40})?\s*[=:])"
    r"|\w+(?:\s+\w+)?:(?=\s*[\d$\\(−-]))",
    re.I,
)
_NUMBER = re.compile(r"\d")
_EXACT = re.compile(r"[\dπ√∞]")
# Where the answer stands in a statement: behind the last of these signs or words.
_BEFORE = re.compile(r"(?:[=:]|\b(?:is|are|equals|makes|gives|get|yields|comes to|exactly)\s)\s*")
# What repeats the value in other words or rounds it.
_AGAIN = re.compile(
    r"[,;(]?\s*(?:≈|\\approx|\b(?:about|roughly|approximately|that is|i\.e\.|or)\b)"
)
_MATHS = re.compile(r"[\d\s+\-−–*/·×^=.,()\[\]{}\\πe√%°|<>≤≥$a-zA-Z]*")
_LONG_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTIONS = frozenset(["sqrt", "pi", "frac", "tfrac", "dfrac", "sin", "cos", "tan", "log", "ln",
                        "cdot", "times", "boxed"])  # fmt: skip
_LAST_NUMBER = re.compile(r"(?<![\w.])\d[\d.,/]*(?<![.,/])(?=\D*\Z)")
_UNIT = r"(?:\s+[^\W\d]+){0,2}"  # "56.70 dollars", "22 such numbers"
_COURTESY = re.compile(
    r"\W*(?:(?:dear|hello|hi|hey)\b|(?:yours|kind|best|warm)\b.{0,12}(?:sincerely|faithfully|"
    r"regards|wishes)\b|(?:thanks|thank you|cheers|agreed|regards)\b[^.]{0,20}\W*\Z)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Found:
    """The main statement (index of its sentence), the rule, and the answer's value as written."""

    index: int
    rule: str
    value: str | None


def find_answer(layout: Layout) -> Found | None:
    """The main statement of the final answer, None where no sentence can be one."""
    pool = layout.with_copies(layout.sentences())
    for rule, pattern in (("\\boxed", _BOXED.search), ("labelled answer", _LABEL.match)):
        hits = [i for i in pool if pattern(layout.of(i))]
        if hits:
            return Found(hits[-1], rule, _value(layout.of(hits[-1])))
    numbered = [i for i in pool if _NUMBER.search(layout.of(i))]
    if numbered:
        last = _paragraph(layout, numbered)
        ends = [i for i in last if _CONCLUDES.match(layout.of(i))]
        if ends:
            return Found(ends[-1], "concluding sentence with a number", _value(layout.of(ends[-1])))
        return Found(last[-1], "last sentence with a number", _value(layout.of(last[-1])))
    if not pool:
        return None
    final = layout.parts[pool[-1]].turn
    said = [i for i in pool if layout.parts[i].turn == final and not _is_courtesy(layout, i)]
    return Found(said[-1], "last sentence, none has a number", None) if said else None


def _paragraph(layout: Layout, numbered: list[int]) -> list[int]:
    """Those of the sentences that stand in one paragraph with the last of them."""
    at = len(numbered) - 1
    while at and _same_paragraph(layout, numbered[at - 1], numbered[at]):
        at -= 1
    return numbered[at:]


def _same_paragraph(layout: Layout, before: int, after: int) -> bool:
    first, second = layout.parts[before], layout.parts[after]
    apart = any(layout.parts[i].kind != "sentence" for i in range(before, after))
    gap = layout.text[first.end : second.start]
    return first.turn == second.turn and not apart and "\n\n" not in gap


def _is_courtesy(layout: Layout, index: int) -> bool:
    shown = layout.of(index)
    signature = len(shown.split()) <= 5 and shown[-1].isalnum()  # a name, a place
    return signature or _COURTESY.match(shown) is not None


def _value(statement: str) -> str | None:
    """The answer as written in a statement: a formula at its end, or its last number."""
    boxed = _boxed(statement)
    if boxed is not None:
        return boxed
    short = _once(statement)
    for candidate in _results(short):
        words = {w.casefold() for w in _LONG_WORD.findall(candidate)}
        if _EXACT.search(candidate) and _MATHS.fullmatch(candidate) and words <= _FUNCTIONS:
            return candidate
    number = _LAST_NUMBER.search(short)
    return number.group() if number else None


def _once(statement: str) -> str:
    """The statement up to where it says its number again, as long as a number comes before."""
    for again in _AGAIN.finditer(statement):
        if _EXACT.search(statement, 0, again.start()):
            return statement[: again.start()]
    return statement


def _results(statement: str) -> list[str]:
    """What can be a result at the end of a statement, without the marks around it."""
    cut = [m.end() for m in _BEFORE.finditer(statement)]
    found = [_core(statement[cut[-1] :])] if cut else []
    tokens = statement.split()
    at = len(tokens)
    while at and {w.casefold() for w in _LONG_WORD.findall(tokens[at - 1])} <= _FUNCTIONS:
        at -= 1
    while at < len(tokens) and not _EXACT.search(tokens[at]):
        at += 1
    return [*found, _core(" ".join(tokens[at:]))]


def _core(text: str) -> str:
    """Without the marks around it; brackets that belong to a formula stay."""
    bare = text.strip(" \t\n*_$`.,;!…")
    if bare.startswith("\\(") and bare.endswith("\\)"):
        bare = bare[2:-2].strip()
    return bare


def _boxed(statement: str) -> str | None:
    start = _BOXED.search(statement)
    if not start:
        return None
    depth = 1
    for at in range(start.end(), len(statement)):
        depth += {"{": 1, "}": -1}.get(statement[at], 0)
        if depth == 0:
            return statement[start.end() : at].strip() or None
    return None


def drop_answer(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """All statements of the final answer go, by the rules at the head of this file.

    Nothing is drawn at random. `removed` holds the sentences. If nothing would be left of what the
    system wrote, nothing is dropped.
    """
    pool = layout.sentences()
    found = find_answer(layout)
    if found is None:
        return nothing("no statement of a final answer" if pool else layout.why_nothing())
    everything = layout.with_copies(pool)
    gone = [i for i in everything if i == found.index or _states(layout, i, found)]
    gone = sorted({*layout.with_copies(gone), *_originals(layout, gone)})
    others = layout.own("code", "call")
    if len(gone) == len(everything) and not others:
        return nothing("the final answer is all that the system wrote", len(pool))
    left = _mentions(layout, everything, set(gone), found.value)
    note = f"; the value {found.value} still stands in {left} other sentence(s)" if left else ""
    return Change(
        edits=removal(layout, gone),
        applied=len(gone),
        of=len(everything),
        removed=tuple(layout.of(i) for i in gone),
        detail=f"{found.rule}{note}",
    )


def _originals(layout: Layout, gone: list[int]) -> list[int]:
    return [i for i, copies in layout.copies.items() if set(copies) & set(gone)]


def _states(layout: Layout, index: int, found: Found) -> bool:
    """Whether a sentence states the same answer."""
    shown = layout.of(index)
    value = found.value
    if value is None or not _holds(shown, value):
        return False
    if _BOXED.search(shown) or _LABEL.match(shown) or _core(shown) == value:
        return True
    concludes = _CONCLUDES.match(shown)
    if concludes and _holds(shown[: concludes.end() + len(value) + 30], value):
        return True
    turn = layout.parts[index].turn
    if layout.turns[turn].final and layout.parts[found.index].turn != turn:
        return True
    return _ends_in(shown, value)


def _holds(shown: str, value: str) -> bool:
    """Whether the value stands there by itself, not as a part of another number or product."""
    before, after = r"(?<![\w.,·*/^×])(?<![-−+·*×] )", r"(?!\w|[.,]\d|\s?[·*/^×+]|\s[-−]\s)"
    return re.search(before + re.escape(value) + after, shown) is not None


def _ends_in(shown: str, value: str) -> bool:
    """Whether the sentence ends in the value as a result, a unit behind it allowed.

    A single digit needs a sign or verb in front ("= 4"): a sentence can end in it by chance.
    """
    results = _results(_once(shown))
    if len(value) < 2:
        results = results[:1] if _BEFORE.search(shown) else []
    wanted = re.compile(re.escape(value) + _UNIT)
    return any(wanted.fullmatch(result) for result in results)


def _mentions(layout: Layout, pool: list[int], gone: set[int], value: str | None) -> int:
    if value is None:
        return 0
    return sum(1 for i in pool if i not in gone and _holds(layout.of(i), value))
