"""Find verdicts and gold answers in the text that a judge sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agenteval.readers.gold import GOLD_NAMES, LEFT_VISIBLE, VERDICT_NAMES, is_verdict
from agenteval.readers.view import FINAL, HEADING, shows_spans
from agenteval.records import Run, View

Kind = Literal["verdict", "reference", "gold_key"]


@dataclass(frozen=True)
class Leak:
    """A suspicious passage: `excerpt` is at most 120 characters, `where` names the speaker."""

    kind: Kind
    excerpt: str
    where: str


class _Segment(NamedTuple):
    speaker: str
    where: str
    text: str


class _Hit(NamedTuple):
    kind: Kind
    start: int
    end: int


_VERDICT_KEY = re.compile(r"\b(?:is_?correct|check_result)\b[\"'`*]*\s*(?:[:=]|\bis\b)\s*\S", re.I)
_GRADED = re.compile(
    r"\b(?:verdict|graded|grading(?: result)?|correctness)\b[\"'`*]*\s*(?:[:=]|\bas\b|\bis\b)"
    r"\s*[\"'`*]*(?:true|false|pass(?:ed)?|fail(?:ed)?|correct|incorrect|right|wrong)\b",
    re.I,
)
_JUDGED = re.compile(
    r"\b(?:the|your|this|his|her|its|final|agent's|model's|student's) (?:final )?"
    r"(?:answer|solution|response|result) (?:is|was) (?:judged |marked |graded )?(?:not )?"
    r"(?:correct|incorrect|right|wrong)\b",
    re.I,
)
# Earlier in the same sentence, these turn a judgement into a condition or a task.
_CONDITION = re.compile(
    r"\b(?:if|whether|when|once|unless|until|check|verify|confirm|ensure|sure|decide|determine|assume|"
    r"suppose|think|believe)\b[^.!?\n]*$",
    re.I,
)
# Right before a judgement, these turn it into something important, wished, possible or aimed at.
# Only the governing words count: "it is important to know that the answer is wrong" is a verdict.
_NOT_ASSERTED = re.compile(
    r"(?:\b(?:critical|crucial|essential|imperative|important|key|mandatory|necessary|paramount|"
    r"required|vital|desirable|preferable|best|possible|probable|plausible|conceivable|likely|"
    r"unlikely|doubtful|uncertain|unclear|confident|convinced|importance|chances?|probability|"
    r"likelihood|odds|possibility|risk|confidence|guarantee|assurance|goal|aim|objective|"
    r"requirement|expectation|assumption|hypothesis|so|such|in order)[*_]*"
    r"(?:\s+(?:for(?:\s+\w+){1,3}|to\s+(?:me|us|you|them|the\s+\w+)))?\s+that"
    r"|\b(?:(?:want|need|require|expect|hope|wish|prefer|insist|demand|request|guarantee)"
    r"(?:e?[sd]|ing)?|hoping|hopefully|make certain|provided|providing|in case|as long as),?"
    r"(?:\s+that)?)\s*$",
    re.I,
)
_GOLD_NAMES = "|".join(GOLD_NAMES)
_GOLD_KEY = re.compile(rf"\b(?:{_GOLD_NAMES})\b[\"'`*]*\s*[:=]\s*\S", re.I)
_QUOTED = "|".join((*VERDICT_NAMES, *GOLD_NAMES))
_QUOTED_KEY = re.compile(rf"[\"'](?:{_QUOTED})[\"']\s*:\s*\S", re.I)
_ANNOUNCED = re.compile(
    r"\b(?:expected (?:final )?(?:answer|output|result|response)|ground[ -]truth(?: answer)?|"
    r"gold(?:en|-standard)? (?:answer|label)|correct (?:final )?answer|right answer|"
    r"reference (?:answer|solution)|true answer|model answer)\b[\"'`*]*\s*"
    r"(?:is|was|should be|would be|=|:)[\"'`*:]*\s*",
    re.I,
)
# Every match in an ASCII text contains one of these, which are faster to search for.
_WORDS = (
    *("verdict", "grad", "correct", "right", "wrong", "expected", "ground", "gold", "reference"),
    *("true answer", "model answer", *VERDICT_NAMES, *GOLD_NAMES),
)
_WRAPPING = re.compile(r"^(?:[\s$\"'`*({\[]|\\boxed|\\\(|\\\[|\\text)+")


def find_leaks(run: Run, view: View) -> list[Leak]:
    """Return the passages of `view` that reveal the verdict or the gold answer, in order.

    The agent's own text is its work: it may state the right answer and call it correct, so
    assistant turns and the final output are searched only for quoted gold keys with a value
    (`"is_correct": true`), which indicate a result log mistaken for an answer. In the problem, and
    in system, user and tool texts, these are leaks:

    - verdict: `is_correct` or `check_result` with a value; "verdict", "graded" or "correctness"
      with a word of judgement; "the (your, this) answer is (not) correct, wrong, ..." unless the
      sentence makes it a condition, a task ("check whether ...") or a goal ("it is critical that
      ..."). A problem may discuss correct answers, so this last form is not searched for there.
    - gold_key: a compound gold name (`correct_ans`, `ground_truth`, `expected_answer`, ...) with a
      value. Plain words such as "solution" or "target" are not flagged.
    - reference: an announcement ("expected answer: X", "the ground truth is X", "correct answer is
      X") where X begins with `run.reference` (case, spacing, $ and \\boxed aside).

    A reference without an announcement is never flagged, nor one in a different notation.

    The last leaks are keys of output and message objects that may be gold or a verdict and stayed
    visible when the run was read (see `gold`; their paths are in the metadata).
    """
    leaks: list[Leak] = []
    for segment in _segments(run, view):
        reported: list[_Hit] = []
        for hit in _hits(segment, run.reference):
            if not any(hit.start < other.end and other.start < hit.end for other in reported):
                reported.append(hit)
                excerpt = " ".join(segment.text[max(0, hit.start - 30) : hit.end + 30].split())
                excerpt = excerpt if len(excerpt) <= 120 else excerpt[:117] + "..."
                leaks.append(Leak(hit.kind, excerpt, segment.where))
    paths = run.metadata.get(LEFT_VISIBLE)
    for path in paths if isinstance(paths, list) else ():
        where, _, key = str(path).rpartition(".")
        kind: Kind = "verdict" if is_verdict(key) else "gold_key"
        leaks.append(Leak(kind, f"the key {key!r}"[:120], where))
    return leaks


def leak_lines(run: Run, view: View) -> list[str]:
    """Return one readable line per leak of a run."""
    return [
        f"{run.id}: {leak.kind} in {leak.where}: {leak.excerpt}" for leak in find_leaks(run, view)
    ]


def _segments(run: Run, view: View) -> Iterator[_Segment]:
    yield _Segment("problem", "problem", view.problem)
    has_headings = run.messages or shows_spans(run)
    speaker, where, lines, turn = "assistant", "trajectory", list[str](), 0
    for line in view.trajectory.split("\n"):
        heading = HEADING.match(line) if has_headings else None
        if heading is None:
            lines.append(line)
            continue
        yield _Segment(speaker, where, "\n".join(lines))
        turn += 1
        speaker = "assistant" if line == FINAL else heading[1]
        where, lines = f"turn {turn} {line}", []
    yield _Segment(speaker, where, "\n".join(lines))


def _hits(segment: _Segment, reference: str | None) -> Iterator[_Hit]:
    text = segment.text
    if text.isascii() and not any(map(text.lower().__contains__, _WORDS)):
        return
    if segment.speaker == "assistant":
        for match in _QUOTED_KEY.finditer(text):
            verdict = any(name in match[0].lower() for name in VERDICT_NAMES)
            yield _Hit("verdict" if verdict else "gold_key", *match.span())
        return
    for pattern in (_VERDICT_KEY, _GRADED):
        yield from (_Hit("verdict", *match.span()) for match in pattern.finditer(text))
    yield from (_Hit("gold_key", *match.span()) for match in _GOLD_KEY.finditer(text))
    for match in _JUDGED.finditer(text) if segment.speaker != "problem" else ():
        before = text[max(0, match.start() - 200) : match.start()]
        if not (_CONDITION.search(before) or _NOT_ASSERTED.search(before)):
            yield _Hit("verdict", *match.span())
    for match in _ANNOUNCED.finditer(text) if reference and _folded(reference) else ():
        size = len(reference or "")
        if _begins_with(text[match.end() : match.end() + 2 * size + 80], reference or ""):
            yield _Hit("reference", match.start(), match.end() + size)


def _begins_with(text: str, reference: str) -> bool:
    """Return whether `text` begins with the reference as a whole word."""
    folded, gold = _folded(text), _folded(reference)
    if not folded.startswith(gold):
        return False
    after = folded[len(gold) : len(gold) + 2]
    inside_number = len(after) == 2 and after[0] in ".," and after[1].isdigit()
    return not (gold[-1].isalnum() and after[:1].isalnum()) and not inside_number


def _folded(text: str) -> str:
    return " ".join(_WRAPPING.sub("", text).casefold().split())
