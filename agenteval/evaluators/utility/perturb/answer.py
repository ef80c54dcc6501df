"""drop_answer: every statement of the final answer, wherever the judge can read it.

The main statement is found by the first of these rules that fits, each time its last sentence:

1. a sentence with \\boxed{...};
2. one that is labelled: "Answer: 35", "Final answer = ...", "The answer is ...";
3. in the last paragraph of the system that has a number: one that concludes: it begins with So,
   Therefore, Thus, Hence, Altogether, In total, with "The count is", "Average speed:" and the like;
4. in the same paragraph, the last sentence with a number;
5. without any number: the last sentence of the last turn that is no greeting or signature.

With it go all sentences that state the same value: labelled, boxed or concluding ones, those that
end in it, and what [final output] repeats. Other mentions and what tools print stay.
"""

from __future__ import annotations

import re

import numpy as np

from agenteval.evaluators.utility.perturb.layout import Edit, Layout, Unchanged

_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_LABEL = re.compile(
    r"\W*(?:(?:so|thus|hence|therefore),?\s+)?(?:(?:the|my|our)\s+)?(?:final\s+|correct\s+)?"
    r"(?:answer|result|solution)s?\W{0,4}(?:\s*[:=]|\s+(?:is|are)\b(?=.*[\dπ√]))",
    re.I,
)
_CONCLUDES = re.compile(
    r"\W*(?:so\b(?!\s+(?:far|that|many|much)\b)"
    r"|(?:therefore|thus|hence|altogether|in total|in all|finally|consequently|overall)\b"
    r"|(?:(?:the|their|its|my|our)\s+)?(?:\w+\s+){0,3}(?:count|total|sum|number|value|area|mean"
    r"|probability|product|length|speed|distance|average|remainder|minimum|maximum|price|cost)s?\b"
    r"(?:[^.:=]{0,40}?\s(?:is|are|equals)\b|(?:\s+of\b[^.:=]{1,40})?\s*[=:])"
    r"|\w+(?:\s+\w+)?:(?=\s*[\d$\\(−-]))",
    re.I,
)
_COURTESY = re.compile(
    r"\W*(?:(?:dear|hello|hi|hey)\b|(?:yours|kind|best|warm)\b.{0,12}(?:sincerely|faithfully|"
    r"regards|wishes)\b|(?:thanks|thank you|cheers|agreed|regards)\b[^.]{0,20}\W*\Z)",
    re.I,
)
_EXACT = re.compile(r"[\dπ√∞]")
# What says a value again, rounded or in other words: "161/36, about 4.47".
_AGAIN = re.compile(
    r"[,;(]?\s*(?:≈|\\approx|\b(?:about|roughly|approximately|that is|i\.e\.|or)\b)"
)
# Where a result begins in a statement: behind the last of these signs or verbs.
_BEFORE = re.compile(r"(?:[=:]|\b(?:is|are|equals|makes|gives|get|yields|comes to|exactly)\s)\s*")
_WORDY = re.compile(r"(?!(?:sqrt|pi|[td]?frac|cdot|times|log|ln|sin|cos|tan)\b)\b[^\W\d_]{2,}")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,/]*(?<![.,/])(?=\D*\Z)")
_MARKS = " \t\n*_$`.,;!…"


def drop_answer(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """All statements of the final answer go, by the rules at the head of this file.

    Nothing is drawn at random. If nothing would be left of what the system wrote, nothing is
    dropped.
    """
    pool = layout.with_copies(layout.sentences())
    main = _main(layout, pool)
    value = _value(layout.of(main))
    gone = {main}
    if value is not None:
        gone.update(i for i in pool if _states(layout, i, value, main))
    gone.update(i for i, copies in layout.copies.items() if gone.intersection(copies))
    if len({*layout.with_copies(gone)}) == len(pool) and not layout.own("code", "call"):
        raise Unchanged("the final answer is all that the system wrote")
    return layout.removal(gone)


def _main(layout: Layout, pool: list[int]) -> int:
    """Index of the main statement's sentence."""
    parts = layout.parts
    for marked in (_BOXED.search, _LABEL.match):
        if stated := [i for i in pool if marked(layout.of(i))]:
            return stated[-1]
    if numbered := [i for i in pool if re.search(r"\d", layout.of(i))]:
        paragraph = [numbered.pop()]
        while numbered:  # upwards, to the first that another paragraph or turn parts from the next
            between = parts[numbered[-1] : paragraph[0]]
            gap = layout.text[between[0].end : parts[paragraph[0]].start]
            if any(p.kind != "sentence" for p in between) or "\n\n" in gap:
                break
            paragraph.insert(0, numbered.pop())
        return ([i for i in paragraph if _CONCLUDES.match(layout.of(i))] or paragraph)[-1]
    for i in reversed([i for i in pool if parts[i].turn == parts[pool[-1]].turn]):
        shown = layout.of(i)
        signature = len(shown.split()) <= 5 and shown[-1].isalnum()  # a name, a place
        if not signature and not _COURTESY.match(shown):
            return i
    raise Unchanged("no statement of a final answer")


def _value(statement: str) -> str | None:
    """The answer as written in a statement: in a box, a formula at its end, or its last number."""
    if boxed := _BOXED.search(statement):
        return boxed[1].strip() or None
    for result in _results(statement):
        if _EXACT.search(result) and not _WORDY.search(result):
            return result
    number = _NUMBER.search(_once(statement))
    return number[0] if number else None


def _once(statement: str) -> str:
    """The statement up to where it says its number again."""
    for again in _AGAIN.finditer(statement):
        if _EXACT.search(statement, 0, again.start()):
            return statement[: again.start()]
    return statement


def _results(statement: str) -> list[str]:
    """What can be a result at the end of a statement: behind its last sign or verb, or behind its
    last word."""
    once = _once(statement)
    starts = [m.end() for m in _BEFORE.finditer(once)][-1:]
    words = [m.end() for m in _WORDY.finditer(once)][-1:] or [0]
    exact = _EXACT.search(once, words[0])
    return [once[at:].strip(_MARKS) for at in [*starts, *([exact.start()] if exact else [])]]


def _states(layout: Layout, index: int, value: str, main: int) -> bool:
    """Whether a sentence states the value, standing by itself and not in a number or product."""
    shown = layout.of(index)
    alone = (
        r"(?<![\w.,·*/^×])(?<![-−+·*×] )" + re.escape(value) + r"(?!\w|[.,]\d|\s?[·*/^×+]|\s[-−]\s)"
    )
    if not re.search(alone, shown):
        return False
    concludes = _CONCLUDES.match(shown)
    turn = layout.parts[index].turn
    if (
        _BOXED.search(shown)
        or _LABEL.match(shown)
        or shown.strip(_MARKS) == value
        or (concludes and re.search(alone, shown[: concludes.end() + len(value) + 30]))
        or (layout.turns[turn].final and layout.parts[main].turn != turn)
    ):
        return True
    # It ends in the value, a unit behind it allowed. A sentence can end in a single digit by
    # chance: that needs a sign or verb in front ("= 4").
    results = _results(shown)
    if len(value) < 2:
        results = results[:1] if _BEFORE.search(shown) else []
    return any(re.fullmatch(re.escape(value) + r"(?:\s+[^\W\d]+){0,2}", r) for r in results)
