"""paraphrase: small substitutions by rule that leave the meaning as it is.

Rules are pairs that mean the same wherever their pattern fits, matched within one sentence without
regard to case. What would be right only sometimes has no rule: "it's" may be "it has", "does not
have to" is not "must not", "since Monday" is no reason, "almost every" cannot be "almost each".
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from agenteval.evaluators.utility.perturb.layout import Edit, Layout, Unchanged, protected

_SO = r"(?!that\b|far\b|to\b|many\b|much\b|long\b|as\b|is\b|are\b|do\b|does\b|did\b|on\b|forth\b)"
_NOT_A_DATE = r"(?!then\b|yesterday\b|last\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\d{4}\b)"

# (pattern, replacement)
PHRASES: tuple[tuple[str, str], ...] = (
    # conclusions
    (rf"^so {_SO}(?=\S)", "therefore "),
    (r"^therefore,? (?=\S)", "so "),
    (r"^hence,? (?=\S)", "therefore "),
    (r"^thus,? (?=\S)", "hence "),
    (rf", so {_SO}(?=\S)", ", and so "),
    (rf", and so {_SO}(?=\S)", ", so "),
    (r"\band hence\b", "and therefore"),
    (r"\band therefore\b", "and hence"),
    # reasons
    (rf"^since {_NOT_A_DATE}(?=[^,]*\b(?:is|are|have|can|cannot|do|does)\b[^,]*,)", "because "),
    (r"(?<!not )(?<!just )(?<!only )(?<!simply )\bbecause (?!of\b|that\b)", "since "),
    # examples
    (r"\bfor example\b", "for instance"),
    (r"\bfor instance\b", "for example"),
    (r"\be\.g\.,? (?=\w)", "for example "),
    (r"\bi\.e\.,? (?=\w)", "that is "),
    (r"(?<=, )that is (?=\d|\w{1,3} ?[=<>≤≥])", "i.e. "),
    # numbers and sizes
    (r"\bgreater than\b", "larger than"),
    (r"\blarger than (?=[-\d])", "greater than "),
    (r"\bapproximately\b", "roughly"),
    (r"\bnearly (?=\w)", "almost "),
    (r"\bis equal to\b", "equals"),
    (r"\bper cent\b", "percent"),
    (r"\b(this|that|it|which) gives (?=\d|[a-z] =)", r"\1 yields "),
    (r"\b(this|that|it|which) yields\b", r"\1 gives"),
    (r"\bwe get (?=[^\W\d_] ?=|\d|the\b)", "we obtain "),
    (r"\bwe obtain\b", "we get"),
    (
        r"(?<!almost )(?<!nearly )(?<!not )(?<!virtually )\bevery "
        r"(?!one\b|other\b|single\b|so\b|now\b|bit\b|time\b|few\b|second\b|third\b|fourth\b)"
        r"(?!two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b)(?=[^\W\d_])",
        "each ",
    ),
    (r"\bthe whole (?!numbers?\b|multiples?\b)(?=[^\W\d_])", "the entire "),
    (r"\bthe entire (?=[^\W\d_])", "the whole "),
    (r"^altogether\b", "in total"),
    (r"^in total\b", "altogether"),
    # order
    (r"\blet's ", "let us "),
    (r"^first, ", "firstly, "),
    (r"^second, ", "secondly, "),
    (r"^finally,? (?=\S)", "lastly, "),
    (r"\bbegins with\b", "starts with"),
    (r"\bstarts (with|at)\b", r"begins \1"),
    # verbs
    (r"(?<!not )(?<!never )(?<!n't )(?<!only )\bhas to be\b", "must be"),
    (r"\bhave to (?!do with\b)", "need to "),
    (r"\blooking for\b", "searching for"),
    (r"\bsearching for\b", "looking for"),
    (r"\bverify that\b", "check that"),
    (r"^note that\b", "observe that"),
    (r"\bin all cases\b", "in every case"),
    (r"(?<!not )\bin order to (?!not\b)", "to "),
    (r"\b(?:is|are) able to\b", "can"),
    (r"\b(is|are) needed\b", r"\1 required"),
    (r"\b(is|are) required\b", r"\1 needed"),
    (r"\bas soon as (?!possible\b)", "once "),
    (r"^should you wish to\b", "if you wish to"),
    # letters
    (r"\bthanks for\b", "thank you for"),
    (r"\bfree of charge\b", "at no cost"),
    (r"\bat no cost\b", "free of charge"),
    (r"\bright away\b", "immediately"),
    (r"\bwithin the next\b", "in the next"),
    (r"\btogether with\b", "along with"),
    (r"\ball the (?=[^\W\d_]{3,}s\b)", "all of the "),
    (r"\ball of the (?=[^\W\d_]{3,}s\b)", "all the "),
    (r"\bregarding\b", "concerning"),
)

# Short and full form. The full form is shortened only where the text has short forms already.
NEGATIONS: tuple[tuple[str, str], ...] = (
    ("don't", "do not"), ("doesn't", "does not"), ("didn't", "did not"), ("isn't", "is not"),
    ("aren't", "are not"), ("wasn't", "was not"), ("weren't", "were not"), ("can't", "cannot"),
    ("couldn't", "could not"), ("won't", "will not"), ("wouldn't", "would not"),
    ("shouldn't", "should not"), ("haven't", "have not"), ("hasn't", "has not"),
)  # fmt: skip
# Only towards the full form: "we have three sides" cannot be "we've three sides".
SHORT_FORMS: tuple[tuple[str, str], ...] = (
    ("I'm", "I am"), ("I'll", "I will"), ("I've", "I have"), ("we're", "we are"),
    ("we'll", "we will"), ("we've", "we have"), ("you're", "you are"), ("you'll", "you will"),
    ("you've", "you have"), ("they're", "they are"), ("they'll", "they will"),
    ("it'll", "it will"), ("there'll", "there will"),
)  # fmt: skip

# UK, US; inflected forms are listed, so that no other word is caught.
SPELLINGS: tuple[tuple[str, str], ...] = (
    ("colour", "color"), ("colours", "colors"), ("coloured", "colored"), ("colouring", "coloring"),
    ("colourings", "colorings"), ("neighbour", "neighbor"), ("neighbours", "neighbors"),
    ("neighbouring", "neighboring"), ("favour", "favor"), ("favourite", "favorite"),
    ("honour", "honor"), ("behaviour", "behavior"), ("labour", "labor"), ("centre", "center"),
    ("centres", "centers"), ("centred", "centered"), ("grey", "gray"), ("analyse", "analyze"),
    ("analysed", "analyzed"), ("organise", "organize"), ("organised", "organized"),
    ("apologise", "apologize"), ("apologised", "apologized"), ("recognise", "recognize"),
    ("recognised", "recognized"), ("realise", "realize"), ("realised", "realized"),
    ("minimise", "minimize"), ("maximise", "maximize"), ("factorise", "factorize"),
    ("factorised", "factorized"), ("summarise", "summarize"), ("cancelled", "canceled"),
    ("cancelling", "canceling"), ("travelled", "traveled"), ("travelling", "traveling"),
    ("labelled", "labeled"), ("modelled", "modeled"), ("catalogue", "catalog"),
    ("judgement", "judgment"), ("fulfil", "fulfill"),
)  # fmt: skip
# Towards US only: the US word is British, too, in another sense or register.
SPELLINGS_TO_US: tuple[tuple[str, str], ...] = (
    ("towards", "toward"), ("whilst", "while"), ("amongst", "among"), ("learnt", "learned"),
    ("enquiry", "inquiry"), ("programme", "program"), ("e-mail", "email"),
)  # fmt: skip

_CHANCE = 0.75
_SHORT = re.compile(r"\w(?:n['’]t|['’](?:ll|re|ve|m))\b")
_NOT_ASKED = r"(?! (?:you|we|I|they|he|she|it|there)\b)"  # "Don't you" cannot be "Do not you"
Rules = list[tuple[str, re.Pattern[str], str]]


def paraphrase(layout: Layout, share: float, rng: np.random.Generator) -> list[Edit]:
    """Words and phrases become others of the same meaning.

    Each rule that fits somewhere is used with a chance of 3 in 4 (at least one), at all its places
    at once, so that spelling stays of one kind (UK or US, the text changes to the other). Formulas,
    code, numbers, quotations and addresses are left alone.
    """
    places = _places(layout, layout.with_copies(layout.sentences()))
    if not places:
        raise Unchanged("no rule fits")
    rules = sorted(places)
    drawn = rng.random(len(rules))
    used = [r for r, d in zip(rules, drawn, strict=True) if d < _CHANCE]
    edits: list[Edit] = []
    for edit in sorted(e for r in used or [rules[int(drawn.argmin())]] for e in places[r]):
        if not edits or edit.start >= edits[-1].end:
            edits.append(edit)
    return edits


def _places(layout: Layout, sentences: list[int]) -> dict[str, list[Edit]]:
    """Edits by the name of their rule. The spellings are one rule."""
    shown = [layout.of(i) for i in sentences]
    british, american = (
        sum(1 for text in shown for _, pattern, _ in _spellings(to_us) if pattern.search(text))
        for to_us in (True, False)
    )
    rules = [*_phrases(any(map(_SHORT.search, shown))), *_spellings(british >= american)]
    places: dict[str, list[Edit]] = {}
    for i in sentences:
        start, end = layout.body(i)
        while start < end and layout.text[start] in '*_"“(':
            start += 1
        sentence = layout.text[start:end]
        hits = [(name, m, new) for name, rule, new in rules for m in rule.finditer(sentence)]
        spans = protected(layout.text, start, end, quotes=True) if hits else None
        for name, hit, new in hits:
            at, to = start + hit.start(), start + hit.end()
            if spans is None or spans.overlap(at, to) or any(c.isdigit() for c in hit[0]):
                continue
            written = hit.expand(new)
            cased = written[0].upper() + written[1:] if hit[0][0].isupper() else written
            places.setdefault(name, []).append(Edit(at, to, cased))
    return places


@cache
def _phrases(shortens: bool) -> Rules:
    """Phrases, and full forms for short ones; short negations where the text has short forms."""
    rules = {pattern: (pattern, new) for pattern, new in PHRASES}
    for short, full in (*NEGATIONS, *SHORT_FORMS):
        pattern = re.escape(short).replace("'", "['’]")
        rules[short] = (rf"\b{pattern}\b{_NOT_ASKED}", full)
    for short, full in NEGATIONS if shortens else ():
        rules[full] = (rf"\b{full}\b(?= [a-z])(?! (?:only|to|just)\b)", short)
    return [(name, re.compile(pattern, re.I), new) for name, (pattern, new) in rules.items()]


@cache
def _spellings(to_us: bool) -> Rules:
    pairs = (*SPELLINGS, *SPELLINGS_TO_US) if to_us else tuple((us, uk) for uk, us in SPELLINGS)
    return [("spelling", re.compile(rf"\b{old}\b(?!-)", re.I), new) for old, new in pairs]
