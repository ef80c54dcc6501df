"""Windows and batches: every token once, limits kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agenteval.models.embedded.plan import Window, batches, windows


def test_short_text_is_one_window() -> None:
    assert list(windows(3, [1, 2], [5, 6, 7], 8)) == [Window(3, 0, (1, 2), (5, 6, 7))]


def test_empty_text_has_no_window() -> None:
    assert list(windows(0, [1], [], 8)) == []


def test_long_text_by_hand() -> None:
    # limit 8, prefix 2: room 6, then 3 new tokens after the 3 before them
    text = list(range(10, 22))
    found = list(windows(0, [1, 2], text, 8))
    assert [(w.at, w.context, w.targets) for w in found] == [
        (0, (1, 2), (10, 11, 12, 13, 14, 15)),
        (6, (1, 2, 13, 14, 15), (16, 17, 18)),
        (9, (1, 2, 16, 17, 18), (19, 20, 21)),
    ]


def test_long_prefix_keeps_its_end() -> None:
    (window,) = windows(0, list(range(100)), [7, 8], 8)
    assert window.context == (96, 97, 98, 99)


def test_prefix_is_whole_while_everything_fits() -> None:
    (window,) = windows(0, list(range(6)), [7, 8], 8)
    assert window.context == (0, 1, 2, 3, 4, 5)


@given(
    prefix=st.integers(1, 60), text=st.integers(0, 200), limit=st.sampled_from([8, 9, 15, 32, 64])
)
def test_every_token_is_scored_once_after_what_precedes_it(
    prefix: int, text: int, limit: int
) -> None:
    before = [-1 - i for i in range(prefix)]
    tokens = list(range(text))
    found = list(windows(0, before, tokens, limit))
    assert [t for w in found for t in w.targets] == tokens
    for window in found:
        assert window.targets[0] == window.at
        assert len(window.context) >= 1
        assert len(window.context) + len(window.targets) <= limit
        seen = [token for token in window.context if token >= 0]
        assert seen == tokens[window.at - len(seen) : window.at]
        if window.at:
            assert len(seen) >= limit // 4


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.integers(1, 400)), max_size=30))
def test_batches_hold_every_window_once(items: list[tuple[int, int, int]]) -> None:
    wanted = [
        Window(index, 0, (kind,) * context, (9,) * targets)
        for index, (kind, context, targets) in enumerate(items)
    ]
    made = list(batches(wanted))
    assert sorted(w.item for b in made for w in b.windows) == list(range(len(wanted)))
    for batch in made:
        lengths = [len(w.context) - batch.shared + len(w.targets) - 1 for w in batch.windows]
        assert min(lengths) >= 1
        if len(lengths) > 1:
            assert max(lengths) * len(lengths) <= 1024
            assert max(lengths) * len(lengths) <= 1.15 * sum(lengths)
        if batch.shared:
            assert len({w.context for w in batch.windows}) == 1
            assert batch.shared == len(batch.windows[0].context) - 1
