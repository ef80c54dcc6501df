"""Does a text decline to answer? Told by what it opens with, in the languages models decline in.

It only names the reason for which there is no answer: it is asked after nothing could be read, and
a text that it overlooks has no answer either.
"""

from __future__ import annotations

import re

_MOST = 2000  # characters; a refusal is short
_OPENING = 300  # characters in which it says so
_ACTS = (
    r"(?:assist|help|comply|fulfil|provide|evaluate|judge|grade|rate|assess|score|answer|engage|"
    r"continue|support|do (?:that|this|so)|discuss|participate|complete|process|respond)"
)
_REFUSALS = re.compile(
    "|".join((
        rf"\b(?:can(?:no|['’]?)t|can not|(?:am|['’]m) (?:not able|unable) to|won['’]?t|will not|"
        rf"must decline to|(?:am|['’]m) not comfortable|(?:have|need) to decline to) {_ACTS}",
        r"\bi (?:must|have to|need to) decline\b",
        r"\bich kann (?:\w+ ){0,5}nicht (?:\w+ ){0,2}(?:helfen|beantworten|bewerten|beurteilen)",
        r"\bkann ich (?:\w+ ){0,5}nicht (?:\w+ ){0,2}(?:helfen|beantworten|bewerten|beurteilen)",
        r"\bje ne (?:peux|suis) pas (?:\w+ ){0,3}(?:en mesure|aider|répondre|évaluer|noter)",
        r"\bno puedo (?:\w+ ){0,3}(?:ayudar|responder|evaluar|calificar)",
        r"\bnão posso (?:\w+ ){0,3}(?:ajudar|responder|avaliar)",
        r"\bnon posso (?:\w+ ){0,3}(?:aiutar|rispondere|valutare)",
        r"\bkan (?:ik )?(?:\w+ ){0,5}niet (?:\w+ ){0,2}(?:helpen|beantwoorden|beoordelen)",
        r"\bnie mogę (?:\w+ ){0,3}(?:pomóc|odpowiedzieć|ocenić)",
        r"не могу (?:\w+ ){0,3}(?:помочь|ответить|оценить|выполнить)",
        r"(?:抱歉|对不起|對不起)[，,。 ]{0,2}.{0,10}(?:无法|不能|無法)",
        r"(?:申し訳|すみません|ごめんなさい).{0,40}(?:できません|できかねます|ません)",
        r"(?:죄송|미안).{0,40}(?:없습니다|어렵습니다|못합니다)",
        r"لا (?:أستطيع|يمكنني)",
        r"(?:üzgünüm|özür dilerim).{0,60}(?:amam|emem|amıyorum|emiyorum)",
    )),
    re.I,
)  # fmt: skip


def declines(text: str) -> bool:
    """True for a short text whose opening says that it will not or cannot do what is asked."""
    return len(text) <= _MOST and _REFUSALS.search(text[:_OPENING]) is not None
