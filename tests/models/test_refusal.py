"""Which texts decline: only short ones that say so at the start."""

from __future__ import annotations

import pytest

from agenteval.models.reply import declines


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot rate this.",
        "I won’t answer.",
        "I am not able to provide a score.",
        "I have to decline.",
        "Ich kann diesen Text nicht bewerten.",
        "Je ne peux pas évaluer ce texte.",
        "Lo siento, no puedo evaluar esto.",
        "Não posso avaliar isto.",
        "Non posso valutare questo.",
        "Dat kan ik helaas niet beoordelen.",
        "Nie mogę tego ocenić.",
        "Я не могу это оценить.",
        "对不起，我不能回答。",
        "申し訳ございませんが、評価できません。",
        "죄송합니다. 평가할 수 없습니다.",
    ],
)
def test_refusals(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The answer cannot be right.",
        "I'm sorry to say that the proof is wrong.",
        "It is clear.",
        "I can grade this: fair.",
        "The student cannot assist here" + "." * 2000,
        "x" * 301 + " I cannot help with that.",
        "Sorry!",
        "We cannot divide by zero.",
    ],
)
def test_other_texts(text: str) -> None:
    assert not declines(text)
