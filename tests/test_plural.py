"""Words for counts."""

from __future__ import annotations

import pytest

from agenteval.text import plural


@pytest.mark.parametrize(
    ("count", "word", "want"),
    [
        (1, "case", "1 case"),
        (0, "case", "0 cases"),
        (3000, "run", "3,000 runs"),
        (1, "criterion", "1 criterion"),
        (2, "criterion", "2 criteria"),
        (2, "copy", "2 copies"),
    ],
)
def test_words_follow_their_number(count: int, word: str, want: str) -> None:
    assert plural(count, word) == want
