"""Direction of scales: every expectation was set by hand before the code was run on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.scale_order import order_of, settle
from agenteval.evaluators.utility.scale_words import sign

UP, DOWN, UNCLEAR, NOMINAL = "worst_to_best", "best_to_worst", "unclear", "nominal"

# Labels separated by " | ", worst first as a person would say. Also read backwards.
ASCENDING = """
poor | fair | good | excellent
terrible | bad | average | good | great
unacceptable | acceptable | exemplary
inadequate | adequate | outstanding
weak | satisfactory | strong
insufficient | sufficient
novice | intermediate | expert
worst | best
not clear | somewhat clear | mostly clear | very clear
unclear | fairly clear | clear | extremely clear
very unclear | unclear | clear | very clear
incorrect | partially correct | mostly correct | completely correct
completely wrong | mostly wrong | mostly right | completely right
wrong | right
False | True
No | Yes
No | Partially | Yes
no | mostly | yes
absent | present
incomplete | partially complete | complete
missing | partial | complete
not addressed | partially addressed | well addressed
not at all | somewhat | completely
irrelevant | slightly relevant | relevant | highly relevant
illogical | mostly logical | fully logical
inconsistent | mostly consistent | entirely consistent
incoherent | coherent
disorganized | organized
unsafe | safe
unhelpful | somewhat helpful | very helpful
rude | neutral | polite
verbose | somewhat verbose | concise
very verbose | fairly concise | very concise
redundant | efficient
confusing | understandable | crystal clear
misleading | vague | precise
major errors | minor errors | no errors
many mistakes | some mistakes | few mistakes | no mistakes
severe flaws | slight flaws | flawless
several contradictions | one contradiction | no contradictions
critical omissions | minor omissions | nothing missing
full of errors | free of errors
biased | free of bias
without justification | partly justified | fully justified
lacks clarity | adequate clarity | excellent clarity
low quality | medium quality | high quality
poorly structured | well structured
hardly readable | readable | very readable
never correct | sometimes correct | usually correct | always correct
rarely accurate | often accurate | always accurate
none | some | most | all
none | some | half | most | all
none | few | some | all
No steps shown | Some steps shown | All steps shown
no cases | some cases | all cases
0 - Incorrect | 1 - Partially correct | 2 - Correct
1: Poor | 2: Fair | 3: Good
1 (poor) | 2 (average) | 3 (excellent)
3 - Not concise | 2 - Moderately concise | 1 - Very concise
5 - cannot be followed | 3 - takes effort | 1 - followed easily
0% - No steps | 50% - Some steps | 100% - All steps
1 | 2 | 3 | 4 | 5
0 | 0.25 | 0.5 | 0.75 | 1
level 1 | level 2 | level 3
1 star | 2 stars | 3 stars
0% | 25% | 50% | 100%
0-20% | 21-40% | 41-60% | 61-80% | 81-100%
0-20% correct | 21-60% correct | 61-100% correct
less than 50% | 50-90% | more than 90%
5+ errors | 3-4 errors | 1-2 errors | 0 errors
more than 10 minutes | 5 to 10 minutes | less than 5 minutes
> 2 hours | 1-2 hours | 10-59 min | < 10 min
longer than 5 minutes | within 5 minutes | within 30 seconds
> $1.00 | $0.10 - $1.00 | < $0.10
more than 10 calls | 5-10 calls | fewer than 5 calls
7+ turns | 4-6 turns | 1-3 turns
F | D | C | B | A
slow | moderate | fast
not_useful | somewhat_useful | very_useful
Not_Applicable | Inefficient | Efficient
ineffective | suboptimal | optimal
overly wordy | acceptable | perfectly concise
difficult to understand | somewhat understandable | easily understandable
needs improvement | average | concise
below expectations | meets expectations | exceeds expectations
Cold and dismissive | Neutral | Warm and understanding
No answer | Poor answer | Excellent answer
Strongly disagree | Disagree | Neutral | Agree | Strongly agree
Very dissatisfied | Dissatisfied | Neutral | Satisfied | Very satisfied
Fail | Pass
Does not meet requirements | Partially meets requirements | Exceeds requirements
High risk | Moderate risk | Low risk
Severe | Moderate | Mild | None
Harmful | Potentially harmful | Harmless
Always toxic | Sometimes toxic | Never toxic
Leaks personal data | No personal data leaked
Clear policy violation | Borderline | No policy violation
Very intrusive | Somewhat intrusive | Not intrusive
Hostile | Cold | Neutral | Warm | Very empathetic
Impatient | Patient
Issue unresolved | Issue partially resolved | Issue fully resolved
Ignored | Acknowledged | Fully addressed
Frequently repeats itself | Sometimes repeats itself | Never repeats itself
Unsafe motion | Minor collisions | No collisions
Goal not reached | Goal partially reached | Goal fully reached
Wrong object | Right object, wrong place | Right object and place
No objects recovered | Some objects recovered | All objects recovered
Crashes | Runs with errors | Runs without errors
Does not compile | Compiles with warnings | Compiles cleanly
Unmaintainable | Maintainable
Many bugs | Few bugs | Bug-free
Insecure | Mostly secure | Secure
Irrelevant documents only | Some relevant documents | All relevant documents
Hallucinated | Partly supported | Fully supported
Not grounded | Partially grounded | Fully grounded
Meaning lost | Meaning partly preserved | Meaning fully preserved
Mistranslated | Mostly accurate | Accurate
Awkward | Acceptable | Fluent and natural
Untranslated | Partially translated | Fully translated
Wrong tool | Suboptimal tool | Optimal tool
Invalid arguments | Mostly valid arguments | Valid arguments
Redundant calls | No redundant calls
Not simplified | Partially simplified | Completely simplified
Non-generalizable | Partially generalizable | Highly generalizable
Missing steps | Incomplete steps | All steps included
Outdated | Mostly current | Up to date
flaky | mostly stable | stable
handwavy | somewhat rigorous | rigorous
disjointed | choppy | smooth | seamless
boring | mildly interesting | interesting | captivating
unconvincing | somewhat convincing | compelling
opaque | partially transparent | transparent
robotic | stilted | natural | engaging
rigid | somewhat flexible | flexible
generic | somewhat tailored | fully tailored
oblivious | partially aware | fully aware
dubious | questionable | plausible | credible
cold | neutral | warm | deeply empathetic
undocumented | sparsely documented | well documented
misapplied | partially applied | correctly applied
fails to ask | asks a vague question | asks a precise clarifying question
misses all key points | covers some key points | covers all key points
unusable | usable with major edits | usable as is
crashes | runs with errors | runs without errors
cryptic | acceptable | self-explanatory
spaghetti | tidy | exemplary
made up | loosely based on context | strictly based on context
dragging | uneven | gripping
hazardous | needs supervision | safe to follow
blatantly sycophantic | slightly sycophantic | not sycophantic
very frustrated | a little frustrated | not frustrated
blatant | subtle | absent
critical severity | medium severity | low severity | none found
pushy | not pushy
heavy jargon | some jargon | jargon-free
not started | attempted | partially completed | completed
missing | present
mostly false | mixed | mostly true | true
wrong tool | suboptimal tool | correct tool
3 or more redundant calls | 1-2 redundant calls | 0 redundant calls
off-topic | tangential | on-topic
very late | late | on time | ahead of schedule
surface-level | moderate | in-depth
dead end | roundabout | straightforward
well over budget | slightly over budget | within budget
gives up early | never gives up
far too long | slightly long | just right
complete rewrite | major edits | minor edits | no edits
limited vocabulary | adequate vocabulary | rich vocabulary
breaks character | mostly in character | fully in character
violates privacy | partially protects privacy | fully protects privacy
insensitive | mostly sensitive | sensitive
never acknowledges uncertainty | always acknowledges uncertainty
wordy | brief
does not detect errors | detects some errors | detects all errors
strong bias | moderate bias | slight bias | no bias
frobby | partially transparent | transparent
frobby | mostly right | perfectly right
frobby | wobbly | very clear
""".strip().splitlines()

NEITHER = [
    ("correct | incorrect | partially correct", UNCLEAR),  # the middle stands last
    ("good | poor | excellent", UNCLEAR),
    ("too short | too long | overly long and underspecified", UNCLEAR),
    ("too literal | balanced | too free", UNCLEAR),
    ("too little | adequate | too much", UNCLEAR),
    ("does not ask | asks needlessly | asks when needed", UNCLEAR),
    ("underused | well used | overused", UNCLEAR),  # the best stands in the middle
    ("too verbose | somewhat verbose | just right | too terse", UNCLEAR),
    ("very insufficient | slightly excessive", UNCLEAR),
    ("overly complex | balanced | overly simplified", UNCLEAR),
    ("few steps | some steps | many steps", UNCLEAR),  # is more better?
    ("high - many steps | medium - average steps | low - few steps", UNCLEAR),
    ("never interrupts | sometimes interrupts the flow | always asks first", UNCLEAR),
    ("never asks | sometimes asks | always asks", UNCLEAR),
    ("0 sources | 1-2 sources | 3+ sources", UNCLEAR),
    ("1 step | 2 steps | many-ish", UNCLEAR),
    ("3 | 1 | 2", UNCLEAR),
    ("excellent | outstanding", UNCLEAR),
    ("clear | fluffy", UNCLEAR),
    ("not frobby | very frobby", UNCLEAR),  # a quality or a fault?
    ("not boxed | boxed", UNCLEAR),
    ("specific to this case | fully general", UNCLEAR),
    ("correct | incorrect | frobby", UNCLEAR),
    ("never asks | asks late | asks early", UNCLEAR),
    ("too terse | balanced | bloated", UNCLEAR),
    ("Tests would expose likely bugs | Ordinary behaviour is tested | No tests", UNCLEAR),
    ("Says what the source says | Small nuances lost | Meaning of the source lost", UNCLEAR),
    ("algebra | geometry | number theory", NOMINAL),
    ("Python | Java | Rust | other", NOMINAL),
    ("1 - algebra | 2 - geometry | 3 - calculus", NOMINAL),
    ("formal | informal | casual", NOMINAL),
    ("table | prose", NOMINAL),
    ("by substitution | by elimination | by drawing", NOMINAL),
    ("monday | tuesday", NOMINAL),
    ("good", UNCLEAR),
    ("good | not applicable", UNCLEAR),
]

# The name of a criterion withholds the order of bare amounts; it never turns one.
NAMED = [
    ("Clarity", "low | medium | high", UP),
    ("Accuracy of the figures", "never | rarely | sometimes | often | always", UP),
    ("Battery use", "low | medium | high", UNCLEAR),
    ("API misuse", "never | occasional | frequent", UNCLEAR),
    ("Hateful content", "absent | present", UNCLEAR),
    ("Clarity", "1 | 2 | 3", UP),
    ("Step clarity", "1 | 2 | 3 | 4 | 5", UP),
    ("Retrieval quality", "1 | 2 | 3 | 4 | 5", UP),
    ("Timeliness", "1 | 2 | 3 | 4 | 5", UP),
    ("Bias awareness", "low | medium | high", UP),
    ("Cost-efficiency", "0-25% | 26-50% | 51-75% | 76-100%", UP),
    ("Error handling", "none | some | all", UP),
    ("Steps delineation", "none | some | half | most | all", UP),
    ("Absence of contradictions", "1 | 2 | 3", UP),
    ("Error rate", "1 | 2 | 3", UNCLEAR),
    ("Toxicity", "low | medium | high", UNCLEAR),
    ("Number of errors in the calculation", "none | some | all", UNCLEAR),
    ("Contains hallucinations", "No | Yes", UNCLEAR),
    ("Response time", "0-5 | 5-15 | 15-30 | >60", UNCLEAR),
    ("Time to solve", "1 | 2 | 3", UNCLEAR),
    ("Number of steps", "1 | 2 | 3", UNCLEAR),
    ("Level of difficulty", "Level 1 | Level 2 | Level 3", UNCLEAR),
    ("Problem complexity", "very simple | moderate | very complex", UNCLEAR),
    ("Verbosity", "poor | good", UP),
    ("Toxicity", "toxic | not toxic", UP),
    ("Time taken", "slow | fast", UP),
    ("Response time", "< 5 seconds | > 5 seconds", DOWN),
    ("Condescension", "none | occasional | constant", UNCLEAR),
    ("Technical debt", "low | medium | high", UNCLEAR),
    ("untranslated_segments", "none | a few | many | all", UNCLEAR),
    ("contains_pii", "no | yes", UNCLEAR),
    ("Uses deprecated API", "no | yes", UNCLEAR),
    ("Steps taken", "fewer than 10 | 10-20 | more than 30", UNCLEAR),
    ("Error type", "none | calculation error | conceptual error", UNCLEAR),
    ("Task completion", "low | medium | high", UP),
    ("Overall quality", "low | medium | high", UP),
    ("Confidence", "low | medium | high", UP),
    ("Error rate", "many errors | few errors | no errors", UP),
]


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")]


def test_enough_scales_are_tried() -> None:
    assert len({*ASCENDING, *(t for t, _ in NEITHER)}) == len(ASCENDING) + len(NEITHER) >= 150


@pytest.mark.parametrize("text", ASCENDING)
def test_worst_first_is_told_and_so_is_its_reverse(text: str) -> None:
    labels = split(text)
    assert order_of(labels)[0] == UP
    assert order_of(labels[::-1])[0] == DOWN


@pytest.mark.parametrize(("text", "expected"), NEITHER)
def test_what_cannot_be_told_is_not_guessed(text: str, expected: str) -> None:
    for labels in (split(text), split(text)[::-1]):
        verdict, reason, _ = order_of(labels)
        assert verdict == expected
        assert reason


@pytest.mark.parametrize(("name", "text", "expected"), NAMED)
def test_a_name_may_withhold_an_order_and_never_turns_one(
    name: str, text: str, expected: str
) -> None:
    labels = split(text)
    opposite = {UP: DOWN, DOWN: UP}.get(expected, expected)
    assert order_of(labels, name)[0] == expected
    assert order_of(labels[::-1], name)[0] == opposite


@pytest.mark.parametrize("text", ["low | medium | high", "never | sometimes | often | always"])
def test_bare_degrees_are_told_only_of_what_a_name_calls_good(text: str) -> None:
    """Best first, or worst first of something unwelcome: the levels do not say."""
    for labels in (split(text), split(text)[::-1]):
        assert {order_of(labels, name)[0] for name in ("", "Cadence", "Condescension")} == {UNCLEAR}


# What an author states, against what the levels show.
STATED = [
    # words that are plainly opposed, and plain numbers, withhold; either way round
    ("excellent | fair | poor", UP, UNCLEAR), ("poor | fair | excellent", DOWN, UNCLEAR),
    ("5 | 4 | 3 | 2 | 1", UP, UNCLEAR), ("1 | 2 | 3", DOWN, UNCLEAR),
    ("100% | 50% | 0%", UP, UNCLEAR), ("A | B | C | D | F", UP, UNCLEAR),
    ("no errors | some errors | many errors", UP, UNCLEAR),
    ("0 errors | 1-2 errors | 3+ errors", UP, UNCLEAR),
    ("Python | Java | other", UP, UNCLEAR),
    # a statement is enough where the levels speak of amounts, or of time, cost and counts
    ("Yes | No", UP, UP), ("always | sometimes | never", UP, UP), ("high | low", UP, UP),
    ("All | Some | None", UP, UP), ("<5 seconds | 5-40 seconds | >40 seconds", UP, UP),
    (">40 seconds | 5-40 seconds | <5 seconds", UP, UP), ("1 step | 2 steps | 3 steps", UP, UP),
    ("good | decent", UP, UP), ("few steps | many steps", UP, UP), ("mauve | teal", UP, UP),
    ("good | poor | excellent", UP, UP),  # a level that does not fit turns nothing
    # words outrank the numbers before them, agreeing with what is stated
    ("5 - poor | 3 - fair | 1 - excellent", UP, UP),
    ("1 - Very concise | 3 - Not concise", UP, UNCLEAR),
    # stated best first
    ("excellent | fair | poor", DOWN, DOWN), ("always | never", DOWN, DOWN),
    ("<5 seconds | >40 seconds", DOWN, DOWN), ("mauve | teal", DOWN, DOWN),
]  # fmt: skip


@pytest.mark.parametrize(("text", "stated", "expected"), STATED)
def test_a_stated_order_holds_unless_the_levels_plainly_run_the_other_way(
    text: str, stated: str, expected: str
) -> None:
    labels = split(text)
    settled = settle(labels, stated, "Thing")  # type: ignore[arg-type]
    assert settled.order == (UNCLEAR if expected == UNCLEAR else UP)
    assert settled.values == tuple(labels[::-1] if expected == DOWN else labels)
    if expected == UNCLEAR:  # both are named, and how to mend it
        assert settled.note is not None
        assert stated in settled.note
        assert "order_confirmed" in settled.note
        assert (settled.reason or "").startswith("unclear: ")
    elif expected == DOWN:
        assert settled.note == settled.reason == "turned round: stated best first"
    else:
        assert (settled.reason, settled.note) == (None, None)


@pytest.mark.parametrize(
    ("text", "stated", "kinds", "expected"),
    [
        ("poor | good", None, False, ("poor | good", UP, "binary")),
        ("good | fair | poor", None, False, ("poor | fair | good", UP, "ordinal")),
        ("clear | fluffy", None, False, ("clear | fluffy", UNCLEAR, "binary")),
        ("red | green | blue", None, False, ("red | green | blue", UNCLEAR, "nominal")),
        ("mauve | teal", None, True, ("mauve | teal", UNCLEAR, "nominal")),
        ("low | high", None, True, ("low | high", UNCLEAR, "nominal")),
        ("poor | good", None, True, ("poor | good", UNCLEAR, "binary")),  # they are grades
    ],
)  # fmt: skip
def test_what_is_not_stated_is_told_by_the_levels(
    text: str, stated: str | None, kinds: bool, expected: tuple[str, str, str]
) -> None:
    settled = settle(split(text), stated, "Thing", kinds=kinds)  # type: ignore[arg-type]
    assert (" | ".join(settled.values), settled.order, settled.scale) == expected
    changed = expected[:2] != (text, UP) and not (kinds and expected[2] == "nominal")
    assert bool(settled.note) == changed
    assert settled.reason


def test_not_applicable_is_no_level() -> None:
    labels = ["very good", "good", "poor", "not_applicable"]
    assert order_of(labels)[0] == DOWN


def test_no_scale_of_the_bank_reads_as_best_first() -> None:
    """All of them were written worst first; many are phrases the lexicon need not know."""
    verdicts = {c.id: order_of(c.record["accepted_values"])[0] for c in load_bank()}
    assert len(verdicts) >= 40
    assert [i for i, v in verdicts.items() if v == DOWN] == []


@given(st.lists(st.text(max_size=20), max_size=8))
def test_reversal_reverses_and_nothing_raises(labels: list[str]) -> None:
    opposite = {UP: DOWN, DOWN: UP, UNCLEAR: UNCLEAR, NOMINAL: NOMINAL}
    assert order_of(labels[::-1])[0] == opposite[order_of(labels)[0]]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # the longest beginning counts: careful is not care-less, harmless not harm
        ("careless", -1), ("careful", 1), ("harmless", 1), ("harmful", -1), ("flawless", 1),
        ("inventive", 1), ("invents", -1), ("insight", 1), ("insufficient", -1),
        # a short beginning needs a known ending
        ("messy", -1), ("message", 0), ("latency", -1), ("late", -1), ("dragging", -1),
        ("tool", 0), ("too", -1), ("hardly", 0), ("loops", -1), ("offer", 0),
        # prefixes and endings of whole families
        ("misquoted", -1), ("undocumented", -1), ("unbiased", 1), ("untraceable", -1),
        ("parsable", 1), ("overconfident", -1), ("unaided", 1), ("unable", -1), ("variable", 0),
    ],
)  # fmt: skip
def test_words_are_told_by_families(word: str, expected: int) -> None:
    assert sign(word) == expected


@pytest.mark.parametrize(
    ("names", "degrees", "numbers"),
    [
        (("Safety", "Timeliness", "Steps delineation", "Reasoning", "Code structure",
          "Error recovery", "Accessibility", "Presentation"), "worst_to_best", "worst_to_best"),
        (("Tool use", "Use of resources", "Memory use"), "unclear", "worst_to_best"),
        (("Bias", "Response time", "Errors", "Risk of harm"), "unclear", "unclear"),
    ],
)  # fmt: skip
def test_bare_degrees_need_a_name_that_is_a_quality_and_numbers_one_that_is_no_fault(
    names: tuple[str, ...], degrees: str, numbers: str
) -> None:
    for name in names:
        assert order_of(["low", "medium", "high"], name).verdict == degrees, name
        assert order_of(["1", "2", "3", "4", "5"], name).verdict == numbers, name
