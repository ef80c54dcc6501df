"""What a simulated user must not say."""

from __future__ import annotations

import pytest

from agenteval.evaluators.workflows.simulators.mistakes import Mistake, check, invented
from tests.evaluators.workflows.simulators.desk import PROFILES, heard

ASKED = ("Hi, a book please.", "What is your reader's number?")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("Thought: they want a number\nResponse: R-20", "plays_agent"),
        ("**Assistant**: How can I help?", "plays_agent"),
        ("I think so. " * 60, "too_long"),
        ("It is R-21.", "invented"),
        ("Call me at 0171 5550123.", "invented"),
        ("Write to hana@library.example.", "invented"),
    ],
)
def test_mistakes_are_found(text: str, kind: str) -> None:
    with pytest.raises(Mistake) as found:
        check(text, heard("hana", *ASKED))
    assert found.value.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "It's R-20.",
        "r-20, and the book is called Dune",
        "I need it for 2 days, until 8pm or the 3rd.",
        "My action: none, I just wait. And the assistant was kind.",
        "Great, that was all! [DONE]",
        "[DONE]",
    ],
)
def test_what_it_may_say(text: str) -> None:
    check(text, heard("hana", *ASKED))


def test_done_at_the_first_turn() -> None:
    with pytest.raises(Mistake) as found:
        check("Never mind. [DONE]", heard("hana"))
    assert found.value.kind == "done_at_once"


def test_the_same_words_a_third_time() -> None:
    twice = heard("hana", "Dune, please.", "Which?", "Dune please", "Which?")
    with pytest.raises(Mistake) as found:
        check("dune, please!", twice)
    assert found.value.kind == "repeats"
    once = heard("hana", "Hello.", "Which?", "Dune please", "Which?")
    check("Dune, please!", once)
    check("Dune, please!", heard("hana", "Dune please", "Which?"))


def test_what_the_agent_said_is_known() -> None:
    assert invented("R-99 it is", heard("hana", "Hi", "Are you R-99?")) == ()
    assert invented("R-99 it is", heard("hana", "Hi", "Who are you?")) == ("R-99",)


def test_a_date_may_be_written_in_another_way() -> None:
    hana = PROFILES["hana"]
    profile = hana.model_copy(update={"facts": {"day": "2031-03-14", "card": "4242"}})
    assert invented("14/3/2031, card 4242", heard(profile, *ASKED)) == ()
    assert invented("on 15/3/2032", heard(profile, *ASKED)) == ("15/3/2032",)
    assert invented("card 4243", heard(profile, *ASKED)) == ("4243",)
    assert invented("part of it: 424", heard(profile, *ASKED)) == ("424",)
