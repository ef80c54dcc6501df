"""The benchmark of pages at its smallest: the same figures, and its own eyes tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.outcome import Row
from benchmarks.pages.__main__ import Shown, open_pages, rows, write_pages
from benchmarks.pages.browser import browser_path, look
from benchmarks.pages.check import Parsed, as_seen, changed_nodes, faults, hidden_in, unseen
from benchmarks.pages.payloads import Swap, harmless, payloads, swapped
from benchmarks.pages.secrets import Secrets, secrets
from benchmarks.pages.terminal import Terminal, runs_in_spreadsheet, terminal

pytestmark = pytest.mark.slow

SHARED = pytest.mark.xdist_group("browser")


def missed(found: list[Row]) -> list[Row]:
    return [row for row in found if row.met is False]


@SHARED
def test_pages_of_trials_and_traces() -> None:
    shown, made = write_pages([0], ("traces", "flows"))
    assert shown.pages == 2
    if path := browser_path():
        open_pages(shown, made, path)
    assert missed(rows(shown, Terminal(), Secrets())) == []


def test_every_payload_in_every_text_of_traces() -> None:
    shown, _ = write_pages(range(0, len(payloads()), 3), ("traces",))
    assert missed(rows(shown, Terminal(), Secrets())) == []


def test_tables_and_exports_of_a_hostile_store(tmp_path: Path) -> None:
    found = terminal(3, tmp_path, errors=("osc-52", "bidi-override", "rich-link"))
    assert found.commands > 30
    assert found.cells > 1000
    assert missed(rows(Shown(), found, Secrets())) == []


def test_a_key_that_a_refusal_repeats(tmp_path: Path) -> None:
    kept = secrets(tmp_path, ("401",), only=("url 401",))
    assert kept.paths == 1
    assert kept.files >= 6
    assert missed(rows(Shown(), Terminal(), kept)) == []


# What finds nothing must be able to find something.


def test_the_corpus_is_large_and_its_names_say_what_it_holds() -> None:
    texts = payloads()
    assert len(texts) >= 40
    assert len(set(texts.values())) == len(texts)
    for name, begin in {"formula-at": "@", "ansi-colour": "\x1b", "c1-csi": "\x9b"}.items():
        assert texts[name].startswith(begin)


def test_swaps_meet_the_same_texts_in_the_same_order() -> None:
    bad, good = Swap(5, hostile=True), Swap(5, hostile=False)
    value = {"a": ["b", ("c", "a")], "": "ok"}
    for swap in (bad, good):
        made = swapped(value, swap)
        assert list(swap.given) == ["a", "b", "c"]
        assert made == {swap.given["a"]: [swap.given["b"], (swap.given["c"], swap.given["a"])],
                        "": "ok"}  # fmt: skip
    texts = list(payloads().values())
    assert list(bad.given.values()) == texts[5:8]
    assert list(good.given.values()) == [harmless(t, i) for i, t in enumerate(texts[5:8])]


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ("<p onclick=x>a</p>", "handler"),
        ("<img src=http://h/x>", "img src"),
        ("<a href=javascript:x>a</a>", "a href"),
        ("<a href=https://h/>a</a>", "opener"),
        ("<p id=a></p><p id=a></p>", "stands 2 times"),
        ("<script>x</script>", "script-src"),
        ("<svg><script>x</script></svg>", "figure holds script"),
    ],
)
def test_a_bad_page_is_found(bad: str, word: str) -> None:
    policy = "default-src 'none'; style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    head = f'<meta content="{policy}"><style></style>'
    assert any(word in fault for fault in faults(Parsed(head + bad)))


def test_a_payload_that_became_an_element_or_went_unseen_is_found() -> None:
    good = Parsed("<p>Abcdefgh</p>")
    assert changed_nodes(Parsed("<p><b>x</b></p>"), good) == ["tags 'b': 1 instead of 0"]
    assert unseen(Parsed("<p></p>"), good, [("<b>x</b>", "Abcdefgh")]) == ["<b>x</b>"]
    assert unseen(Parsed("<p>&lt;b>x&lt;/b></p>"), good, [("<b>x</b>", "Abcdefgh")]) == []
    assert hidden_in("a\x1b\u202e\n") == {"\x1b", "\u202e"}
    assert as_seen("a\u202e \n b") == "a[U+202E] b"


@pytest.mark.parametrize("cell", ["=1", "  +1+a", "\u00a0@x", "\ufeff=1", "-a", "\tx", "|x", "－1"])
def test_formulas_are_known(cell: str) -> None:
    assert runs_in_spreadsheet(cell)
    assert not runs_in_spreadsheet(f"'{cell}")


@pytest.mark.parametrize("cell", ["", "-0.5", "+3", "-1e-05", "a=1", "'=1"])
def test_what_is_no_formula(cell: str) -> None:
    assert not runs_in_spreadsheet(cell)


@SHARED
def test_the_browser_sees_what_a_page_does() -> None:
    path = browser_path()
    if path is None:
        pytest.skip("NO CHROMIUM: pages are not tested in a browser (`make browser`, as root)")
    act = "document.title='owned';alert(1)"
    (seen,) = look([f'<title>t</title><img src=http://127.0.0.1:9/x onerror="{act}">'], path)
    assert seen.executed == 2  # the title, and a handler that stands there
    assert seen.requests == ["http://127.0.0.1:9/x"]
    assert seen.dialogs == ["1"]
