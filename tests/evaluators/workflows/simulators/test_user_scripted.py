"""The user without a model."""

from __future__ import annotations

import pytest

from agenteval.evaluators.workflows.simulators.nouns import DONE
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
from agenteval.records import Message
from tests.evaluators.workflows.simulators.desk import PROFILES, heard

USER = ScriptedUser()


def test_it_begins_with_its_opening() -> None:
    assert USER.say(heard("hana")).text == "Hi, I would like to borrow a book."


def test_it_tells_the_facts_it_is_asked_for() -> None:
    said = USER.say(heard("hana", "Hi", "Please tell me: `title`, [reader_id]."))
    assert said.text == "title: Dune\nreader_id: R-20"
    assert not said.done


def test_facts_in_lists_are_told_by_how_often_they_are_asked_for() -> None:
    first, second = "Please tell me: `title`.", "Which `title` then?"
    jan = PROFILES["jan"]
    assert USER.say(heard(jan, "Hi", first)).text == "title: Emma"
    assert USER.say(heard(jan, "Hi", first, "title: Emma", second)).text == "title: Dune"
    third = heard(jan, "Hi", first, "title: Emma", second, "title: Dune", first)
    assert USER.say(third).text == "title: Dune"


def test_it_does_not_know_what_is_no_fact() -> None:
    assert USER.say(heard("hana", "Hi", "Your `shoe_size`?")).text == "shoe_size: I do not know"


def test_it_says_the_first_choice_not_said_yet_that_is_offered() -> None:
    offer = "What do you want?\n- Ask for a book\n- Bring a book back"
    assert USER.say(heard("jan", "Hi", offer)).text == "Bring a book back"
    again = heard("jan", "Hi", offer, "Bring a book back", offer)
    assert USER.say(again).text == "Ask for a book"
    over = heard("jan", "Hi", offer, "Bring a book back", offer, "Ask for a book", offer)
    assert USER.say(over).text == "None of these, thank you."


def test_a_goodbye_is_the_end_but_not_a_question_with_it() -> None:
    said = USER.say(heard("hana", "Hi", "Goodbye!"))
    assert (said.text, said.done) == (DONE, True)
    asked = USER.say(heard("hana", "Hi", "Your `title`, or goodbye?"))
    assert not asked.done


def test_a_question_in_plain_words_is_understood_by_the_name_of_the_fact() -> None:
    said = USER.say(heard("hana", "Hi", "Which title are you looking for?"))
    assert said.text == "title: Dune"


def test_after_two_replies_that_it_does_not_follow_it_leaves() -> None:
    first = USER.say(heard("hana", "Hi", "The weather is fine."))
    assert first.text == "Sorry, I do not follow. Borrow Dune."
    assert USER.say(heard("hana", "Hi", "The weather is fine.", first.text, "Very fine.")).done


def test_nothing_else_is_wanted() -> None:
    said = USER.say(heard("hana", "Hi", "It is yours. Anything else?"))
    assert (said.text, said.done) == ("No, thank you, that was all.", False)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_says_the_same(seed: int) -> None:
    asked = heard("otto", "Hi", "Your `title`?", seed=seed)
    assert USER.say(asked) == USER.say(asked)


def test_asides_come_now_and_then_and_only_once() -> None:
    aside = "Is the reading room heated?"
    texts = [USER.say(heard("otto", "Hi", "Your `title`?", seed=s)).text for s in range(60)]
    share = sum(aside in text for text in texts) / 60
    assert 0.1 < share < 0.7  # 0.35 is meant: six standard deviations are 0.37
    with_it = next(text for text in texts if aside in text)
    for seed in range(30):
        later = heard("otto", "Hi", "Your `title`?", with_it, "Your `title`?", seed=seed)
        assert aside not in USER.say(later).text


def test_it_asks_once_whether_anybody_is_there() -> None:
    waiting = USER.say(heard("hana", "Hi", "Please tell me: `title`.", "title: Dune"))
    assert (waiting.text.split("\n")[0], waiting.done) == ("Are you still there?", False)
    again = heard("hana", "Hi", "Which `title`?", "title: Dune", seed=3)
    again = type(again)(
        again.profile, again.now, (*again.messages, Message(role="user", content=waiting.text))
    )
    assert USER.say(again).done
