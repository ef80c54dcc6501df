"""paraphrase: small substitutions by rule that leave the meaning as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, nothing
from agenteval.evaluators.utility.perturb.layout import Layout, protected
from agenteval.evaluators.utility.perturb.phrases import (
    NEGATIONS,
    PHRASES,
    SHORT_FORMS,
    SPELLINGS,
    SPELLINGS_TO_US,
)

_CHANCE = 0.75
_DIGIT = re.compile(r"\d")
Rule = tuple[re.Pattern[str], str]


def paraphrase(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """Words and phrases become others of the same meaning; `detail` lists them.

    Each rule that fits somewhere is used with a chance of 3 in 4 (at least one), at all its places
    at once, so that spelling stays of one kind (UK or US, the text changes to the other). Formulas,
    code, numbers, quotations and addresses are left alone. `of` counts the places of all rules.
    """
    places = _places(layout)
    if not places:
        return nothing("no rule fits" if layout.sentences() else layout.why_nothing())
    rules = sorted(places)
    drawn = rng.random(len(rules))
    used = [r for r, d in zip(rules, drawn, strict=True) if d < _CHANCE]
    used = used or [rules[int(drawn.argmin())]]
    edits: list[Edit] = []
    for edit in sorted(e for r in used for e in places[r]):
        if not edits or edit.start >= edits[-1].end:
            edits.append(edit)
    said = (f"{layout.text[e.start : e.end].strip()} → {e.new.strip()}" for e in edits)
    return Change(
        edits=tuple(edits),
        applied=len(edits),
        of=sum(len(p) for p in places.values()),
        removed=tuple(layout.text[e.start : e.end] for e in edits),
        detail="; ".join(said),
    )


def _places(layout: Layout) -> dict[str, list[Edit]]:
    """Edits by rule. The spellings are one rule."""
    found: dict[str, list[Edit]] = {}
    sentences = layout.with_copies(layout.sentences())
    shown = [layout.of(i) for i in sentences]
    rules = {**_phrase_rules(), **_contraction_rules(_shortens(shown))}
    to_us = {f"spelling:{us}": (p, us) for p, us in _spelling_rules(to_us=True)}
    to_uk = {f"spelling:{uk}": (p, uk) for p, uk in _spelling_rules(to_us=False)}
    british = sum(1 for text in shown for p, _ in to_us.values() if p.search(text))
    american = sum(1 for text in shown for p, _ in to_uk.values() if p.search(text))
    rules |= to_us if british >= american else to_uk
    for i in sentences:
        for name, edit in _hits(layout, i, rules):
            rule = "spelling" if name.startswith("spelling:") else name
            found.setdefault(rule, []).append(edit)
    return found


def _hits(layout: Layout, index: int, rules: dict[str, Rule]) -> Iterator[tuple[str, Edit]]:
    start, end = layout.body(index)
    while start < end and layout.text[start] in '*_"“(':
        start += 1
    shown = layout.text[start:end]
    hits = [(name, m, new) for name, (p, new) in rules.items() for m in p.finditer(shown)]
    if not hits:
        return
    spans = protected(layout.text, start, end, quotes=True)
    for name, match, new in hits:
        a, b = start + match.start(), start + match.end()
        if spans.overlap(a, b) or _DIGIT.search(match.group()):
            continue
        yield name, Edit(a, b, _cased(match.group(), match.expand(new)))


def _cased(old: str, new: str) -> str:
    return new[0].upper() + new[1:] if old[0].isupper() else new


def _shortens(shown: list[str]) -> bool:
    short = re.compile(r"\w(?:n['’]t|['’](?:ll|re|ve|m))\b")
    return any(short.search(text) for text in shown)


@cache
def _phrase_rules() -> dict[str, Rule]:
    return {p: (re.compile(p, re.I), new) for p, new in PHRASES}


@cache
def _contraction_rules(shortens: bool) -> dict[str, Rule]:
    """Full forms for short ones; short negations, too, where the text has short forms."""
    asked = r"(?! (?:you|we|I|they|he|she|it|there)\b)"  # "Don't you" cannot be "Do not you"
    rules: dict[str, Rule] = {}
    for short, full in (*NEGATIONS, *SHORT_FORMS):
        pattern = re.escape(short).replace("'", "['’]")
        rules[short] = (re.compile(rf"\b{pattern}\b{asked}", re.I), full)
    if shortens:
        for short, full in NEGATIONS:
            rules[full] = (re.compile(rf"\b{full}\b(?= [a-z])(?! (?:only|to|just)\b)", re.I), short)
    return rules


@cache
def _spelling_rules(to_us: bool) -> tuple[Rule, ...]:
    pairs = (*SPELLINGS, *SPELLINGS_TO_US) if to_us else tuple((us, uk) for uk, us in SPELLINGS)
    return tuple((re.compile(rf"\b{old}\b(?!-)", re.I), new) for old, new in pairs)
