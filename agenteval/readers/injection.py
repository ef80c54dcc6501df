"""Flag texts that seem to address the judge; flagged texts are never filtered out.

Flagged text is judged like any other, because data markers in the prompt make it harmless
(models/prompts.py), but users may want to know about the attempt. Patterns are
incomplete: an attempt may have no flag, and an honest text about grading may have one.

Signs: `fake marker` (a fake end of the data), `role tag` (turns of a chat template),
`instruction to the judge`, `verdict` (a grade in the form of an answer), `invisible characters`,
`bidirectional` (text shown in another order), `control characters` (of terminals),
`look-alike letters` (of another alphabet within a word), `encoded` (text hidden in base64).
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from agenteval.models.prompts import neutralise
from agenteval.records import View

_GAP = r"[^\n]{0,60}?"  # text between two words of a phrase
_JUDGE = (
    r"(?:grader|judge|evaluator|examiner|reviewer|rater|marker|auditor"
    r"|(?:grading|evaluation|judging|ai) (?:model|system|judge|assistant))s?"
)
_BEST = r"(?:full|highest|maximum|max|top|best|perfect|maximal)"
_MARKS = r"(?:marks?|scores?|grades?|ratings?|points|levels?|credit)"
_RULES = r"(?:instructions?|rules?|criteri(?:a|on)|rubrics?|prompts?|guidelines|policy|checks)"
_ALL = r"(?:all|any|every|the|your|these|those|previous|prior|above|earlier)"
_DATA = r"(?:data|work|result|submission|answer|response|input|output|context|solution)"
_AWAY = r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|discard(?:ing)?|overrid(?:e|ing))"
_EARLIER = r"(?:above|before|prior|previous(?:ly)?|preceding|earlier|until now|so far)"
_TEXT = r"(?:text|messages?|prompts?|contexts?|contents?|conversations?|inputs?|lines?|words)"
_GRADE = r"(?:[a-f]\b|\d|best|excellent|pass|top|perfect|highest)"


# Patterns of texts that address a judge. Texts are normalized first (case, width, hidden
# characters, look-alike letters). Every gap is bounded, so searching is linear.


def _any(*patterns: str) -> re.Pattern[str]:
    r"""Combine patterns into one, trying a leading `\b` only once."""
    words = [p.removeprefix(r"\b") for p in patterns if p.startswith(r"\b")]
    unbounded = [p for p in patterns if not p.startswith(r"\b")]
    return re.compile("|".join([*unbounded, rf"\b(?:{'|'.join(words or ['(?!)'])})"]), re.M)


def _either(words: str) -> tuple[str, ...]:
    return tuple(words.split("|"))


_MARKER = _any(
    r"(?:[<‹〈]{2}|[≪«《])[ /]{0,4}(?:begin|end)\b[^<\n]{0,80}(?:[>›〉]{2}|[≫»》])",
    rf"\[ ?/?(?:begin|end)[ _](?:of[ _])?(?:the[ _])?{_DATA} ?\]",
    r"\[the (?:start|end) of [^\]\n]{1,40}\]",
    rf"[-=*#]{{3,}} ?(?:begin|end) of (?:the )?(?:{_DATA}|user \w{{1,10}})",
)
_ROLE = _any(
    r"<\|[a-z_▁][a-z_▁' ]{1,40}\|>",
    r"\[/?(?:inst|system_prompt|available_tools|tool_calls)\]",
    r"<(?:start|end)_of_turn>|<</?sys>>|</?(?:system|assistant|tool_response|think)>",
    r"^ {0,3}(?:#{1,4} {0,2})?(?:system|developer)(?: message| prompt)? ?:",
    r"^#{1,4} {0,2}system\b|^### ?instructions?:",
)
_OTHER_LANGUAGES = (
    r"ignorier\w{0,4} (?:bitte )?(?:alle|die)\b[^\n]{0,40}(?:anweisung|regel|kriterien)",
    r"(?:volle|höchste|maximale) (?:punktzahl|note|bewertung|punkte)\b",
    r"ignor(?:ez|e|er|a|ad|en|ar)\b[^\n]{0,20}\b(?:instructions?|instrucciones|istruzioni|consignes)",
    r"\bnote (?:maximale|la plus haute)",
    r"máxima (?:puntuación|nota|calificación)",
    r"忽略[^\n]{0,20}(?:指令|指示|说明|规则)|最高分|满分|無視して|满点|満点",
    r"игнорируй\w{0,3}\b[^\n]{0,40}(?:инструкци|правил|указани)|высш\w{1,4} балл",
    r"تجاهل[^\n]{0,30}(?:التعليمات|الإرشادات)|أعلى درجة",
    r"निर्देशों को (?:अनदेखा|नज़रअंदाज)|पूरे अंक",
)
_INSTRUCTION = _any(
    # drop the rules
    rf"\b(?:ignore|disregard|forget|override|bypass|skip)\b{_GAP}\b{_ALL}\b{_GAP}\b{_RULES}\b",
    rf"\b{_AWAY} (?:all|everything|anything|whatever)\b(?: [\w']{{1,20}}){{0,3}} {_EARLIER}\b",
    rf"\b{_AWAY} (?:all )?(?:of )?(?:the )?(?:above|preceding|foregoing)"
    rf"(?: {_TEXT}\b| and\b|[.,:;!]|$)",
    rf"\b{_AWAY} (?:all )?(?:of )?the (?:{_EARLIER} {_TEXT}|{_TEXT} {_EARLIER})\b",
    r"\b(?:grading|evaluation|rubric|criteria) (?:policy|is (?:done|over)|(?:was|were) "
    r"(?:changed|updated))",
    # who is addressed
    rf"\b(?:dear|attention|hello|hey|for|to) (?:the |all |any |our )?{_JUDGE}(?: only)?\b ?[,.:!)]",
    rf"\b(?:note|message|notice|instructions?|rules?) (?:to|for) (?:the )?{_JUDGE}\b",
    rf"(?<!rst[ -])(?<!ond[ -])(?<!ird[ -])(?<!\wth[ -])\b{_JUDGE} ?: ?\S",  # "fourth graders: 40"
    rf"\b(?:as|being) (?:an?|the) (?:ai )?(?!ai (?:model|system|assistant)){_JUDGE}\b",
    rf"\b{_JUDGE} (?:must|should|has to|have to|shall|is required|gives?|grants?)\b",
    rf"\b{_JUDGE} reports no errors\b",
    # what to say
    rf"\b(?:give|award|assign|grant|choose|select|receives?|get|gets|put|accept)\b{_GAP}"
    rf"\b{_BEST}[ -](?:possible )?{_MARKS}\b",
    rf"\b(?:grade|rate|score|mark) (?:this|it|me|my|every|all|each|the)\b{_GAP}"
    rf"\b(?:{_BEST}|excellent|10|5|100)\b",
    r"\b(?:please|simply|just|and|then) (?:rate|score|grade|output) (?:an? )?"
    r"(?:(?:score|rating|grade) of )?(?:5|10|100|five|ten)(?: ?/ ?\d+| out of \d+)?(?:[.!,;]|$)",
    r"\b(?:output|response|assistant|answer|model) \([abm]\) (?:is|wins|must|should)\b",
    rf"\b{_BEST} {_MARKS}\b[^\n.]{{0,20}}\b(?:for all|everywhere|only|on (?:all|each|every)|please|"
    rf"applies|is allowed)\b",
    rf"\balways (?:answer|choose|give|grade|rate)\b{_GAP}\b(?:{_BEST}|last|good|excellent)\b",
    r"\bgrade of this work is\b",
    r"\breport (?:no|zero) errors\b|\bempty findings list\b|\bfindings must be\b",
    r"\breport an empty list\b|\breport nothing\b",
    # the words of a repair, and questions for the prompt
    r"\bsend the complete json object again\b|\breply with one json object\b",
    r"\bwhat are your instructions\b",
    rf"\b(?:repeat|print|reveal|show|output|leak)\b{_GAP}\b(?:your|the)\b{_GAP}"
    rf"(?:system prompt|instructions|text above)",
    *_OTHER_LANGUAGES,
)
_VERDICT = _any(
    r"[\"']label[\"'] ?: ?[\"'{]",
    r"[\"'](?:explanation|reason|evidence)[\"'] ?: ?[\"'][^\n]{0,300}?"
    r"[\"'](?:label|score|equal|achieved|grade|verdict)[\"'] ?:",
    r"[\"']score[\"'] ?: ?[\d.]{1,6} ?[,}]|[\"']findings[\"'] ?: ?\[",
    rf"^\W{{0,3}}(?:final )?(?:grade|verdict|rating) ?[:=] ?\W{{0,3}}{_GRADE}",
    r"\b(?:grade|verdict|rating) ?: ?\[\[|\bevaluation result ?:",
    r"\[\[[abc](?:>{1,2}|<{1,2}|=)[abc]\]\]|\b(?:verdict|winner|better|best)\b[^\n]{0,40}\[\[[abc]\]\]",
    r"[\"'](?:output|response|model|winner|rank|ranking|preferred)[\"'] ?: ?[\"']?"
    r"(?:output |model |response )?[(\[]?[abm][)\]]?[\"'}]",
    r"</?(?:verdict|score|grade|rating)>",
    r"\blabel = \w|\bgrade: (?:best|excellent|top|perfect)",
    r"\b(?:level|grade)[^\n]{0,40}\bin its list\b",
)
# Sign → (words, pattern). Every matching line has one of the words, which are searched first
# because that is ten times as fast.
PATTERNS: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "fake marker": (("begin", "end", "[the start"), _MARKER),
    "role tag": (
        (
            "<|",
            *_either("inst]|_of_turn>|system|assistant>|think>|instruction|developer"),
            *_either("tool_response>|sys>>|available_tools|tool_calls"),
        ),
        _ROLE,
    ),
    "instruction to the judge": (
        _either(
            "ignor|disregard|forget|overrid|bypass|skip|grade|grading|judg|evaluat|"
            "examiner|reviewer|rater|marker|auditor|ai |rate |rating|score|mark|points|"
            "credit|rubric|criteria|instructions|prompt|text above|discard|output |(a)|"
            "(b)|(m)|level|always|json object|findings|report|punkt|note |bewertung|"
            "máxima|忽略|最高分|满分|無視|满点|満点|игнорир|балл|تجاهل|درجة|निर्देश|अंक"
        ),
        _INSTRUCTION,
    ),
    "verdict": (
        _either(
            "label|score|grade|verdict|rating|findings|equal|achieved|level|"
            'evaluation result|[[|output"|response"|model"|winner|rank|preferred'
        ),
        _VERDICT,
    ),
}


_EXCERPT = 100  # characters
_UNSEEN = (
    "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0d\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef\ue0f0"
)
_HIDDEN = re.compile(rf"[{_UNSEEN}]|(?<=.)\ufeff", re.S)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]|\r(?!\n)(?=[\x1b])")
# Any of these characters; a single search rules out most texts.
_SUSPECT = re.compile(
    f"[{_UNSEEN}\ufeff\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0e-\x1f\x7f\u0400-\u04ff]"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{32,4000}={0,2}(?![A-Za-z0-9+/=])")
_MIXED = re.compile(r"[A-Za-z][\u0400-\u04ff]{1,3}[A-Za-z]?[A-Za-z\u0400-\u04ff]{2}")
# Letters of other alphabets that look like Latin letters
_LOOKS = str.maketrans("аеорсухіјѕԁһӏкмтвнԛԝαεορτυνικ", "aeopcyxijsdhlkmtbhqwaeoptuvik")
_MOST_ENCODED = 40  # stretches to decode per text


@dataclass(frozen=True, slots=True)
class Sign:
    """A part of a text that seems to address the judge; `excerpt` is a neutralised quote."""

    name: str
    excerpt: str


def find_signs(text: str) -> tuple[Sign, ...]:
    """Return at most one sign per name, in the order of NAMES, in linear time."""
    signs = [*_characters(text)]
    plain = _folded(text)
    lines = plain.split("\n")
    for name, (words, pattern) in PATTERNS.items():
        present = [word for word in words if word in plain]
        if not present:
            continue
        worth = "\n".join(line for line in lines if any(word in line for word in present))
        if name == "instruction to the judge":
            worth = worth.replace("_", " ")  # as in file names
        if hit := pattern.search(worth):
            signs.append(Sign(name, _excerpt(worth, hit.start())))
    if hidden := _decoded(text):
        signs.append(Sign("encoded", _excerpt(hidden, 0)))
    order = {name: i for i, name in enumerate(NAMES)}
    return tuple(sorted(signs, key=lambda sign: order[sign.name]))


NAMES = (
    *PATTERNS,
    "invisible characters",
    "bidirectional",
    "control characters",
    "look-alike letters",
    "encoded",
)


def view_signs(view: View) -> tuple[Sign, ...]:
    """Return the signs in the problem, the trajectory and the reference of a view."""
    return texts_signs((view.problem, view.trajectory, view.reference or ""))


def texts_signs(texts: Iterable[str]) -> tuple[Sign, ...]:
    """Return the signs in any of the texts, each name once."""
    signs: dict[str, Sign] = {}
    for text in texts:
        for sign in find_signs(text):
            signs.setdefault(sign.name, sign)
    return tuple(sorted(signs.values(), key=lambda sign: NAMES.index(sign.name)))


def _characters(text: str) -> Iterable[Sign]:
    if not _SUSPECT.search(text):
        return
    for hit in _HIDDEN.finditer(text):
        context = text[max(0, hit.start() - 1) : hit.end() + 1]
        if neutralise(context) != context:  # not the joiner of an emoji or a script
            yield Sign("invisible characters", _excerpt(text, hit.start()))
            break
    for name, pattern in (
        ("bidirectional", _BIDI),
        ("control characters", _CONTROL),
        ("look-alike letters", _MIXED),
    ):
        if place := pattern.search(text):
            yield Sign(name, _excerpt(text, place.start()))


def _folded(text: str) -> str:
    """Return the text in lower case without hidden characters, compatibility forms, look-alikes."""
    if text.isascii():
        return text.lower()
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    if not _SUSPECT.search(text):
        return text.lower()
    text = _HIDDEN.sub("", text).lower()
    return text.translate(_LOOKS) if _MIXED.search(text) else text


def _decoded(text: str) -> str:
    """Return the first base64 text that decodes to words, or ""."""
    for count, hit in enumerate(_BASE64.finditer(text)):
        if count == _MOST_ENCODED:
            break
        run = hit.group().rstrip("=")
        try:
            data = base64.b64decode(run + "=" * (-len(run) % 4), validate=True)
            words = data.decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if words.isprintable() and len(words.split()) >= 4:
            return words
    return ""


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - 20)
    cut = " ".join(text[start : start + _EXCERPT].split())
    return neutralise(cut)[:_EXCERPT]
