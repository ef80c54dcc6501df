"""The word lists: those that are shipped, and the lines that refuse unfit ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import CONJUNCTIONS, KINDS, Kind, Lexicon, built_in

Json = dict[str, Any]


@pytest.fixture
def lists() -> Json:
    return copy.deepcopy(built_in().to_json())


def test_the_shipped_lists_have_seven_phrases_each() -> None:
    lexicon = built_in()
    assert {kind: len(lexicon.words[kind]) for kind in KINDS} == dict.fromkeys(KINDS, 7)
    assert lexicon.conjunctions == (";", ", and", ", but", ", yet", ", while", ", whereas")


def test_there_are_no_vague_words_among_them() -> None:
    assert not built_in().forms & {"until", "when", "by the time", "while", "as"}
    for form in built_in().forms:
        assert not {"until", "during", "or", "not"} & set(form.split())


def test_verbs_agree_in_number() -> None:
    """The singular is the plural with its first word in the third person."""
    third = {"are": "is", "happen": "happens", "go": "goes"}
    for kind in ("VP_prec", "VP_succ", "VP_none"):
        for phrase in built_in().words[kind]:
            first, *rest = phrase.plural.split()
            assert phrase.singular.split() == [third.get(first, f"{first}s"), *rest]


def test_times_have_prepositions_of_both_directions() -> None:
    for kind in ("P_prec", "P_succ"):
        fit = [built_in().words[kind][i].singular for i in built_in().allowed(kind, time=True)]
        assert 2 <= len(fit) < 7
        assert set(fit) <= {
            "before", "prior to", "ahead of", "earlier than", "some time before",
            "at some point before", "after", "later than", "subsequent to", "some time after",
            "at some point after",
        }  # fmt: skip
    assert built_in().allowed("VP_none") == tuple(range(7))


def test_json_round_trip_and_hash(lists: Json) -> None:
    again = Lexicon.from_json(json.loads(json.dumps(lists)))
    assert again == built_in()
    assert again.sha256 == built_in().sha256
    assert len(again.sha256) == 64
    lists["words"]["VP_none"].reverse()  # numbers in trees would mean other words
    assert Lexicon.from_json(lists).sha256 != built_in().sha256
    lists = built_in().to_json() | {"conjunctions": [";", ", but"], "about": "ignored"}
    assert Lexicon.from_json(lists).conjunctions == (";", ", but")


def verb(singular: str, plural: str) -> Json:
    return {"singular": singular, "plural": plural}


def text(words: str, *, time: bool = False) -> Json:
    return {"text": words, "time": time} if time else {"text": words}


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("VP_prec", verb("happens before", "happen before"), "is 'happens' of VP_none and the"),
        ("VP_succ", verb("is done after", "are done after"), "'is done' of VP_none and the prep"),
        ("VP_prec", verb("precedes", "precede"), "VP_prec: 'precedes' stands twice .also in VP_p"),
        ("VP_succ", verb("runs before", "run before"), "holds 'before' of P_prec"),
        ("VP_prec", verb("goes before", "goes before"), "verb phrases differ in singular and plu"),
        ("VP_none", verb("is done first thing", "are done first thing"), "'is done' begins 'is do"),
        ("VP_none", verb("then happens", "then happen"), "'happens' inside 'then happens' begins"),
        ("VP_none", verb("starts before", "start before"), "holds 'before' of P_prec"),
        ("VP_none", verb("Starts", "Start"), "only small letters"),
        ("VP_none", verb("starts,", "start,"), "only small letters"),
        ("VP_none", verb("starts  up", "start  up"), "only small letters"),
        ("VP_none", verb("", ""), "only small letters"),
        ("VP_none", verb("starts and ends", "start and end"), "word 'and' is not allowed"),
        ("VP_none", verb("does not start", "do not start"), "word 'not' is not allowed"),
        ("P_succ", text("until"), "word 'until' is not allowed"),
        ("P_prec", text("before"), "'before' stands twice"),
        ("P_succ", text("shortly before"), "holds 'before' of P_prec"),
        ("P_prec", text("before the end of"), "'before' begins 'before the end of'.*may begin"),
        ("P_prec", text("ahead of when"), "word 'when' is not allowed"),
        ("SC_prec", text("before which"), "word 'which' is not allowed"),
        ("SC_succ", text("when"), "word 'when' is not allowed"),
        ("SC_prec", text("by the time"), "strictly before or after"),
        ("SC_succ", text("following the start that"), None),
        ("P_prec", text("sooner than", time=True), None),
        ("VP_none", verb("gets done", "get done"), None),
        ("VP_prec", verb("paves the way for", "pave the way for"), None),
        ("VP_prec", {"text": "leads to"}, "VP_prec: an entry must have the text singular and pl"),
        ("P_prec", verb("ahead", "ahead"), "P_prec: an entry must have the text text"),
        ("P_prec", "ahead", "P_prec: an entry must have"),
        ("SC_prec", text("ahead of the hour when", time=True), "for prepositions only"),
        ("P_prec", {"text": "sooner than", "time": 1}, "true or false"),
    ],
)
def test_a_phrase_too_many(lists: Json, kind: Kind, entry: object, message: str | None) -> None:
    lists["words"][kind].append(entry)
    if message is None:
        assert len(Lexicon.from_json(lists).words[kind]) == 8
        return
    with pytest.raises(InputError, match=message) as error:
        Lexicon.from_json(lists, "mine.json")
    assert str(error.value).startswith(f"mine.json: {kind}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, 'must be an object with "schema": 1'),
        ({"words": []}, '"words" must hold'),
        ({"words": {"VP_prec": None}}, "every kind must have a list"),
        ({"words": {}}, "VP_prec: at least two phrases"),
        ({"conjunctions": ";"}, '"conjunctions" must be a list'),
        ({"conjunctions": []}, "conjunctions: must be different ones"),
        ({"conjunctions": [", or"]}, "conjunctions: must be different ones"),
        ({"conjunctions": [";", ";"]}, "conjunctions: must be different ones"),
    ],
)
def test_another_form(lists: Json, change: Json, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Lexicon.from_json(lists | change)


def test_a_list_missing_unknown_or_without_a_time(lists: Json) -> None:
    with pytest.raises(InputError, match="phrases: must be an object"):
        Lexicon.from_json([lists])
    extra = copy.deepcopy(lists)
    extra["words"]["VP_last"] = []
    with pytest.raises(InputError, match="VP_last: unknown kind"):
        Lexicon.from_json(extra)
    for entry in lists["words"]["P_succ"]:
        entry["time"] = False
    with pytest.raises(InputError, match="P_succ: at least one preposition must fit"):
        Lexicon.from_json(lists)


def test_activities_that_are_fit() -> None:
    built_in().check_activities(
        ["after-school club", "gift for the manager's son", "shift 7 handover", "éclair baking"]
    )
    built_in().check_activities(
        ["follow-up call", "Q&A with guests", "CV/portfolio check", "coming event poster"]
    )


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        (["bread and butter delivery"], "holds 'and', which joins clauses"),
        (["time when guests arrive"], "holds 'when', which joins clauses"),
        (["meeting after lunch"], "holds 'after', a phrase of the word lists"),
        (["Before school club"], "holds 'before', a phrase"),
        (["call", "mail", "Call"], "activity 'Call' is there twice"),
        (["call, mail"], "only words with single spaces"),
        (["call  back"], "only words with single spaces"),
        (["call at 15:00"], "only words with single spaces"),
        (["Dr. Smith call"], "only words with single spaces"),
        ([" call"], "only words with single spaces"),
        ([""], "only words with single spaces"),
    ],
)
def test_activities_that_are_not(phrases: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built_in().check_activities(phrases)


def test_conjunctions_are_those_of_the_grammar() -> None:
    assert set(CONJUNCTIONS) == {";", ", and", ", but", ", yet", ", while", ", whereas"}
