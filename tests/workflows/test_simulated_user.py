"""The user without a model."""

from __future__ import annotations

import asyncio

import pytest

from agenteval.workflows.simulated_user import DONE, ScriptedUser, UserContext, UserTurn, tell
from tests.workflows.desk import PROFILES, heard


def say(context: UserContext) -> UserTurn:
    return asyncio.run(ScriptedUser().speak(context))


def test_facts_in_lists_are_told_by_how_often_they_are_asked_for() -> None:
    first, second = "Please tell me: `title`.", "Which `title` then?"
    jan = PROFILES["jan"]
    assert say(heard(jan, "Hi", first)).text == "title: Emma"
    assert say(heard(jan, "Hi", first, "title: Emma", second)).text == "title: Dune"
    third = heard(jan, "Hi", first, "title: Emma", second, "title: Dune", first)
    assert say(third).text == "title: Dune"


def test_it_says_the_first_choice_not_said_yet_that_is_offered() -> None:
    offer = "What do you want?\n- Ask for a book\n- Bring a book back"
    assert say(heard("jan", "Hi", offer)).text == "Bring a book back"
    again = heard("jan", "Hi", offer, "Bring a book back", offer)
    assert say(again).text == "Ask for a book"
    over = heard("jan", "Hi", offer, "Bring a book back", offer, "Ask for a book", offer)
    assert say(over).text == "None of these, thank you."


def test_a_goodbye_is_the_end_but_not_a_question_with_it() -> None:
    said = say(heard("hana", "Hi", "Goodbye!"))
    assert (said.text, said.done) == (DONE, True)
    asked = say(heard("hana", "Hi", "Your `title`, or goodbye?"))
    assert not asked.done


def talk(profile: str, *replies: str) -> list[tuple[str, bool]]:
    """What the user says to these, without asides, and whether it could answer."""
    texts, answers = ["Hi"], []
    known = PROFILES[profile].model_copy(update={"asides": ()})
    for reply in replies:
        said = say(heard(known, *texts, reply))
        assert [(m.who, m.kind, m.repaired) for m in said.mistakes] in (
            [],
            [("user", "cannot_answer", False)],
        )
        answers.append((said.text, not said.mistakes))
        texts += [reply, said.text]
    return answers


HANAS_WISH = "What I would like: Borrow Dune."
LOST = "Sorry, I do not follow. I do not know."


@pytest.mark.parametrize(
    ("profile", "replies", "answers"),
    [
        # the second value of a fact, however it is asked for
        (
            "jan",
            ["May I have the title, please?", "Not in. Which other title would you like?"],
            [("title: Emma", True), ("title: Dune", True)],
        ),
        (
            "hana",
            ["Please share your reader id and the title."],
            [("title: Dune\nreader_id: R-20", True)],
        ),
        (
            "hana",
            ["Please tell me:\n- Title\n- Reader id"],
            [("title: Dune\nreader_id: R-20", True)],
        ),
        # questions for its will: its choice, yes, else what it would like, and no bare facts
        ("jan", ["Do you want to ask for a book?"], [("Yes. Ask for a book", True)]),
        ("hana", ["Would you like Dune or Emma?"], [("title: Dune", True)]),
        (
            "hana",
            ["Which title?", "Dune is in. Shall I lend you this title?"],
            [("title: Dune", True), (HANAS_WISH, True)],
        ),
        ("hana", ["Is the title Dune, is that right?"], [("Yes.", True)]),
        ("hana", ["The title is Emma, is that right?"], [("title: Dune", True)]),
        ("hana", ["How can I help you?"], [(HANAS_WISH, True)]),
        # what it does not know is not the agent's fault
        (
            "hana",
            ["What is your shoe size?", "Your shoe size, please?", "What is your hat size?"],
            [(HANAS_WISH, False), (LOST, False), (DONE, False)],
        ),
        # one value for ever: other words for it are its fault, the same words are not
        (
            "hana",
            ["Which title?", "What title?", "Another title, please?"],
            [("title: Dune", True), ("title: Dune", True), (DONE, False)],
        ),
        ("hana", ["Which title?"] * 3, [("title: Dune", True)] * 3),
    ],
)
def test_questions_in_plain_words(
    profile: str, replies: list[str], answers: list[tuple[str, bool]]
) -> None:
    assert talk(profile, *replies) == answers


def test_asides_come_now_and_then_and_only_once() -> None:
    aside = "Is the reading room heated?"
    texts = [say(heard("otto", "Hi", "Your `title`?", seed=s)).text for s in range(60)]
    share = sum(aside in text for text in texts) / 60
    assert 0.1 < share < 0.7  # 0.35 is meant: six standard deviations are 0.37
    with_it = next(text for text in texts if aside in text)
    for seed in range(30):
        later = heard("otto", "Hi", "Your `title`?", with_it, "Your `title`?", seed=seed)
        assert aside not in say(later).text


def test_facts_are_one_line_each_with_json_for_what_is_no_plain_text() -> None:
    facts = {"title": "Dune", "seats": 2, "lines": "a\nb", "empty": "", "number": "4711"}
    assert tell(facts).split("\n") == [  # type: ignore[arg-type]
        "title: Dune",
        "seats: 2",
        'lines: "a\\nb"',
        'empty: ""',
        "number: 4711",
    ]
