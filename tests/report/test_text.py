"""Escaping, as properties of any text."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.report.text import cut, json_block, shown, variant_label
from tests.report.making import HOSTILE

anything = st.text(st.characters(), max_size=60) | st.sampled_from(HOSTILE)


@given(anything)
@example("</script>")
@example("\ud800")
def test_a_block_ends_where_it_should_and_reads_back(text: str) -> None:
    clean = shown(text)
    block = json_block({"t": clean, clean: [clean]})
    assert json.loads(block) == {"t": clean, clean: [clean]}
    assert not set(block) & set("<>&\u2028\u2029")
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            seen.append(data)

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag == "script"

    Reader().feed(f'<script type="application/json">{block}</script>')
    assert "".join(seen) == block


@given(anything)
def test_what_is_shown_is_visible_and_can_be_written(text: str) -> None:
    result = shown(text)
    result.encode()
    assert shown(result) == result
    for char in result:
        category = unicodedata.category(char)
        assert category not in ("Cc", "Cs", "Zl", "Zp") or char in "\n\t"
        assert unicodedata.bidirectional(char) not in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"
        )  # fmt: skip


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError):
        json_block([float("nan")])


def test_long_texts_say_what_is_left_out() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcd" * 500, 3) == "abc [… cut: 3 of 2,000 characters]"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("drop_sentences:0.25:7", "drop sentences 25 %"),
        ("shuffle_sentences:-:0", "shuffle sentences"),
        ("odd:<b>:1", "odd:<b>:1"),
        ("original", "original"),
    ],
)
def test_variants_have_names_for_people(name: str, label: str) -> None:
    assert variant_label(name) == label


def test_seeds_tell_twins_apart() -> None:
    names = ["pad:0.25:1", "pad:0.25:2", "pad:0.5:1"]
    assert [variant_label(n, names) for n in names] == ["pad 25 %, seed 1", "pad 25 %, seed 2",
                                                        "pad 50 %"]  # fmt: skip
