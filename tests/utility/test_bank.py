"""The embedded critic: what it proposes stays with the kind of the task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.models.embeddings import make_embedder
from agenteval.records import Task
from agenteval.utility.bank import draw, rank_bank, task_kinds

CORE = {"completeness", "factual-accuracy", "instruction-following"}


class Words:
    """An embedder by hand: one direction for each word that is known."""

    name, default_tau = "words", 0.7

    def __init__(self, *known: str) -> None:
        self.known = known

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = [[float(word in text.casefold()) for word in self.known] + [0.1] for text in texts]
        return np.array([np.array(row) / np.linalg.norm(row) for row in rows], dtype=np.float32)


def groups(task: Task, words: Words, **more: object) -> set[str]:
    ranking = rank_bank(task, words, **more)  # type: ignore[arg-type]
    drawn = {c.provenance.concept for seed in range(5) for c in draw(ranking, seed)}
    assert drawn <= {c.id for c in ranking.concepts}
    return {c.group for c in ranking.concepts}


def test_only_the_kinds_of_the_task_and_the_core() -> None:
    """The kind with the nearest example task: here the only one that knows the word."""
    task = Task(name="t", description="It haggles with the seller of a flat.")
    words = Words("haggle")
    assert rank_bank(task, words).kinds == ("dialogue",)
    assert groups(task, words) == {"dialogue", "general"}
    assert {c.id for c in rank_bank(task, words).concepts} >= CORE
    assert groups(task, words, kinds=["code"]) == {"code", "general"}
    with pytest.raises(InputError, match="unknown kind 'poetry'; known: reasoning, "):
        rank_bank(task, words, kinds=["poetry"])


def test_examples_help_to_tell_the_kind() -> None:
    examples = {"success": [{"input": "x", "output": "A timetable for the school."}]}
    description = "It does what it is asked."
    task = Task.model_validate({"name": "t", "description": description, "examples": examples})
    assert rank_bank(task, Words("timetable", "asked"), use_examples=True).kinds == ("planning",)


def test_a_draw_depends_on_its_seed_alone() -> None:
    ranking = rank_bank(Task(name="t", description="a team"), Words("team", "agent"))
    first = [c.id for c in draw(ranking, 3)]
    assert first == [c.id for c in draw(ranking, 3)]
    assert len(set(first)) == len(first) == 6
    assert any(first != [c.id for c in draw(ranking, seed)] for seed in range(5))


@pytest.mark.local
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "description"),
    [
        ("mathematics", "It solves systems of linear equations."),
        ("code", "It repairs failing builds of a compiler."),
        ("dialogue", "It answers complaints of hotel guests in a chat."),
        ("planning", "It plans the tour of a band: towns, dates, lorries, money."),
        ("data", "It computes monthly averages from tables of sensors and draws them."),
        ("household", "It steers a robot through a simulated flat to fetch things."),
    ],
)
def test_kinds_of_tasks_that_are_in_no_list(kind: str, description: str) -> None:
    kinds = rank_bank(Task(name="t", description=description), make_embedder(None)).kinds
    assert kind in kinds
    assert set(kinds) < set(task_kinds())


@pytest.mark.local
@pytest.mark.slow
def test_far_from_all_kinds_none_is_guessed() -> None:
    description = (
        "It receives the night's alarms of a cold store with the readings of the last hour and "
        "decides which technician is woken, if any, with a line on what to bring."
    )
    ranking = rank_bank(Task(name="t", description=description), make_embedder(None))
    assert ranking.kinds == ()
    assert {c.group for c in ranking.concepts} == {"general"}
    assert len(ranking.concepts) >= 5
