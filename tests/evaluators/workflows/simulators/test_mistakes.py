"""What a simulated user must not say."""

from __future__ import annotations

import pytest

from agenteval.evaluators.workflows.simulators.known import invented
from agenteval.evaluators.workflows.simulators.mistakes import Mistake, check
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
    ],
)
def test_what_it_may_say(text: str) -> None:
    check(text, heard("hana", *ASKED))


TOLD = ("Dune, for R-20.", "Here it is.")


@pytest.mark.parametrize("text", ["Great, that was all! [DONE]", "[DONE]", "Thanks [ done ]."])
def test_how_it_may_leave(text: str) -> None:
    check(text, heard("hana", *TOLD))


@pytest.mark.parametrize(
    ("conversation", "early"),
    [
        (ASKED, True),
        (("Dune, please.", "And your number?"), True),  # R-20 is needed, and nobody has said it
        (("Dune, for R-20.", "Is that all?"), False),
        (("Dune?", "Is R-20 your number?"), False),
        (("Dune?", "I cannot do that."), False),  # it was not asked for anything
        (("Dune?", "Anything else?"), False),
        (("Dune?", "Why not come by? Goodbye."), False),
        (("Hi", "Which book?", "Dune!", "which book"), False),
        (("Hi", "Which book?", "Dune!", "Which book?"), False),  # it asks again: it has failed
    ],
)
def test_leaving_early(conversation: tuple[str, ...], early: bool) -> None:
    known = heard("hana", *conversation)
    if not early:
        check("[DONE]", known)
        return
    with pytest.raises(Mistake) as found:
        check("Bye! [DONE]", known)
    assert found.value.kind == "leaves_early"


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


FACTS = {
    "time": "15:30", "day": "2031-05-07", "price": 12.5, "sum": 1200, "phone": "+49 171 2345678",
    "flight": "LH 2031", "card": "4111 1111 1111 1111",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "3:30pm", "at 15.30", "15h30", "7.5.31", "20310507", "$12.50", "12,50", "1,200", "r20",
        "R 20", "LH2031", "lh-2031", "4111111111111111", "00491712345678", "I am 100% sure",
        "24/7",
    ],
)  # fmt: skip
def test_facts_in_other_spellings_are_known(text: str) -> None:
    profile = PROFILES["hana"].model_copy(update={"facts": {**FACTS, "id": "R-20"}})
    assert invented(text, heard(profile, *ASKED)) == ()


@pytest.mark.parametrize(
    "text",
    ["3:40pm", "3:30am", "16:30", "8.5.31", "20310508", "12.60", "1,300", "r21", "LH2032", "LH20",
     "4111111111111112", "0049171234567", "5000", "203"],
)  # fmt: skip
def test_other_values_are_invented(text: str) -> None:
    profile = PROFILES["hana"].model_copy(update={"facts": {**FACTS, "id": "R-20"}})
    assert invented(text, heard(profile, *ASKED)) == (text,)
