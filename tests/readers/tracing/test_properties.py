"""Properties: keys, order, forms, the forgiving parser."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers.attributes import flatten, insert, with_lists
from agenteval.readers.spans import keeps_spans
from agenteval.readers.strict_json import LooseDecoder, Notes
from tests.readers.tracing.samples import TRACE, flat, nested, otlp, read, span

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEYS = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
# Trees whose lists hold scalars or objects, as attributes do.
TREES = st.recursive(
    SCALARS | st.lists(SCALARS, min_size=1, max_size=3),
    lambda inner: (
        st.dictionaries(KEYS, inner, min_size=1, max_size=3)
        | st.lists(st.dictionaries(KEYS, inner, min_size=1, max_size=3), min_size=1, max_size=12)
    ),
    max_leaves=15,
)


def unflatten(dotted: dict[str, Any]) -> Any:
    root: dict[str, Any] = {}
    for key, value in dotted.items():
        insert(root, key.split("."), value)
    return with_lists(root)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=4))
def test_keys_are_dotted_and_back(tree: dict[str, Any]) -> None:
    dotted = flatten(tree)
    assert all(not isinstance(v, dict) for v in dotted.values())
    assert unflatten(dotted) == tree


@given(JSON.filter(lambda v: isinstance(v, (dict, list))), st.sampled_from([None, 1]))
def test_the_forgiving_parser_reads_json(value: Any, indent: int | None) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        notes, decoder = Notes(), LooseDecoder(keeps_spans)
        assert decoder.decode(text, "t", None, notes) == value
        # two values are not JSON, so this is read by the scanner
        assert decoder.decode(text + "\n" + text, "t", None, notes) == [value, value]
        assert (decoder.broken, notes.lines()) == (None, [])


@pytest.mark.parametrize("text", ["[{'a': 1}]", '[{"a": 1 /* one */}]', "[{a: 1}]"])
def test_what_is_nearly_json_is_read_with_a_note(text: str) -> None:
    notes = Notes()
    assert LooseDecoder(keeps_spans).decode(text, "t", 7, notes) == [{"a": 1}]
    assert [line[:22] for line in notes.lines()] == ["t:7: not strict JSON ("]


@given(st.text(alphabet='{}[],:"\\ antrue1.e-', max_size=40))
def test_no_text_breaks_the_decoder(text: str) -> None:
    line = LooseDecoder(keeps_spans)
    value = line.decode(text, "t", 1, Notes())
    json.dumps(value, allow_nan=False)
    if line.broken is None or any(value if isinstance(value, list) else [value]):
        assert LooseDecoder(keeps_spans).decode(text, "t", None, Notes()) == value
    else:  # of a line that is passed over, as a document, nothing is left
        with pytest.raises(InputError, match=r"^t:1:"):
            LooseDecoder(keeps_spans).decode(text, "t", None, Notes())


ATTRIBUTES = st.dictionaries(
    KEYS
    | st.sampled_from(
        [
            "input.value",
            "output.value",
            "tool.name",
            "llm.model_name",
            "openinference.span.kind",
            "llm.input_messages.0.message.content",
        ]
    ),
    TEXTS | st.integers(0, 99) | st.lists(st.integers(0, 9), max_size=2),
    max_size=4,
)


@st.composite
def trees(draw: Any) -> list[dict[str, Any]]:
    """Roots of a random forest of up to twelve spans."""
    count = draw(st.integers(1, 12))
    parents = [draw(st.integers(-1, i - 1)) for i in range(count)]
    status = [draw(st.sampled_from(["Ok", "Error", "Unset"])) for _ in range(count)]
    made: dict[int, dict[str, Any]] = {}
    for i in reversed(range(count)):
        children = [made[j] for j in range(i + 1, count) if parents[j] == i]
        made[i] = span(
            f"{i + 1:016x}", *children, status_code=status[i], span_attributes=draw(ATTRIBUTES)
        )
    return [made[i] for i in range(count) if parents[i] == -1]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(trees(), st.randoms(use_true_random=False))
def test_every_form_says_the_same(roots: list[dict[str, Any]], random: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = list(flat(*roots))
        (run,) = read(folder, nested(*roots)).runs
        # the order of the file is the order of the tree, since all spans start at once
        assert [s.id for s in run.spans] == [row["span_id"] for row in rows]
        assert [s.parent_id for s in run.spans] == [row["parent_span_id"] for row in rows]
        assert read(folder, rows, "t.jsonl").runs == [run]
        (other,) = read(folder, otlp(*roots)).runs
        drop = {"service_name", "scope_version"}
        expected = [
            s.model_copy(
                update={"attributes": {k: v for k, v in s.attributes.items() if k not in drop}}
            )
            for s in run.spans
        ]
        assert list(other.spans) == expected
        random.shuffle(rows)
        (mixed,) = read(folder, rows, "t.jsonl").runs
        assert mixed.id == TRACE
        assert {s.id: s for s in mixed.spans} == {s.id: s for s in run.spans}
        order = {s.id: i for i, s in enumerate(mixed.spans)}
        assert all(order[s.parent_id] < order[s.id] for s in mixed.spans if s.parent_id)
