"""Stores to report on: scripted judges, some with words that try to act."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from agenteval.engine import Experiment, Outcome
from agenteval.engine.judging import JudgeUnit
from agenteval.records import Criterion, Run, Score, View
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.page import utility_page
from agenteval.utility.page_data import JudgeMaterial, ReportScope, from_store
from agenteval.utility.verify.options import VerifyOptions
from tests.store.making import LEVELS, ScriptedJudge, failures, scores

DROP = "drop_sentences:0.25:0"
SPACES = "whitespace:-:0"

# What a solution, a name or an explanation may hold. Each would act, hide or break something in a
# page that is put together carelessly.
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<!-- <script> --> ]]> <![CDATA[ <svg onload=alert(1)>",
    "\" onmouseover=\"document.title='owned'\" x='",
    "javascript:document.title='owned'",
    "<style>body{display:none}</style><link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<iframe src='http://127.0.0.1:9/'></iframe><base href='http://127.0.0.1:9/'>",
    "{{ 7 * 7 }}{% raw %} ${7*7} `backtick` \\u003cscript\\u003e",
    "\u202eright to left\u2066\u200b\u2028 and \u2029 \ufeff \U000e0041",
    "\x1b[31mred\x1b]0;title\x07 nul\x00 bell\x07 \x9b \r over",
)


class Seen(HTMLParser):
    """Elements, attributes and the text of scripts and styles, as a parser sees them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.inside: list[tuple[str, dict[str, str], str]] = []
        self._words: list[str] = []
        self._open: tuple[str, dict[str, str]] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, k, v or "") for k, v in attrs]
        if tag in ("script", "style"):
            self._open = (tag, {k: v or "" for k, v in attrs})

    def handle_endtag(self, tag: str) -> None:
        if self._open and tag == self._open[0]:
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inside.append((*self._open, data))
        else:
            self._words.append(data)

    @property
    def words(self) -> str:
        """All text, white space folded."""
        return " ".join("".join(self._words).split())


def assert_harmless(page: str) -> None:
    """Hostile words (`<script>alert(1)</script>`, U+202E, ESC) are text on the page, and nothing
    else."""
    seen = Seen(page)
    assert not {"iframe", "link", "object"} & set(seen.tags)
    assert (seen.tags["script"], seen.tags["img"]) == (1, page.count('<img class="paper" alt="'))
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]
    assert not [v for _, name, v in seen.attributes if name in ("id", "href", "class") and "<" in v]
    assert not {"\u202e", "\u200b", "\x1b"} & set(page)
    assert "<script>alert(1)</script>" in seen.words
    assert "[U+202E]" in seen.words


@dataclass(frozen=True)
class Shape:
    """How a store looks. `success` says of run number i whether it succeeded."""

    runs: int = 6
    criteria: int = 3
    repeats: int = 2
    systems: int = 2
    success: Callable[[int], bool | None] = lambda i: i % 2 == 0
    words: Sequence[str] = ("It adds the numbers. It says why. The sum is right.",)
    copies: bool = True
    script: Callable[[JudgeUnit], Outcome | None] = lambda _: None


def items_of(shape: Shape) -> list[tuple[Run, View]]:
    made = []
    for i in range(shape.runs):
        text = shape.words[i % len(shape.words)]
        run = Run(
            id=f"run-{i}",
            task="sums",
            system=f"{text[:40]} {i % shape.systems}"
            if len(shape.words) > 1
            else f"style-{i % shape.systems}",
            input=f"problem {i // 2} {text}",
            output=f"{text} Number {i}. The end of it.",
            success=shape.success(i),
        )
        made.append((run, View(run_id=run.id, problem=run.input, trajectory=run.output)))
    return made


def rubric(n: int, names: Sequence[str] = ()) -> list[Criterion]:
    return [
        Criterion(
            id=f"quality-{i}",
            name=names[i % len(names)] + f" {i}" if names else f"Quality {i}",
            description=names[i % len(names)] if names else "how good",
            accepted_values=LEVELS,
            expect={"drop_sentences": "lower", "whitespace": "none"},
        )
        for i in range(n)
    ]


def fill(store: Store, shape: Shape, names: Sequence[str] = ()) -> tuple[ScriptedJudge, list[Run]]:
    """Judge everything; returns the judge and the runs."""
    judge = ScriptedJudge(script=shape.script)
    items, criteria = items_of(shape), rubric(shape.criteria, names)
    variants = [("original", items)]
    changes = {DROP: lambda t: t.rpartition("Number")[0], SPACES: lambda t: t.replace(" ", "  ")}
    for variant, change in changes.items() if shape.copies else ():
        copies = [
            (
                run,
                view.model_copy(
                    update={"trajectory": change(view.trajectory), "origin": view.sha256}
                ),
            )
            for run, view in items
        ]
        variants.append((variant, copies))
    rated = JudgeEvaluator(judge, variants, criteria, shape.repeats)
    asyncio.run(Experiment(rated, store, concurrency=4).run())
    return judge, [run for run, _ in items]


def material_of(store: Store, judge: ScriptedJudge) -> JudgeMaterial:
    return from_store(store, judge.source.sha256, judge.source, ReportScope(), VerifyOptions())


def made(path: Path, shape: Shape | None = None, names: Sequence[str] = ()) -> str:
    """The page of a new store."""
    with Store(path) as store:
        judge, _ = fill(store, shape or Shape(), names)
        return utility_page(material_of(store, judge))


def saying(words: Sequence[str]) -> Callable[[JudgeUnit], Outcome]:
    """A judge whose explanations and evidence are these words, in turn."""

    def script(unit: JudgeUnit) -> Outcome:
        outcome = scores(unit, ScriptedJudge().source)
        said = words[int(unit.run.id.rpartition("-")[2]) % len(words)]
        results = tuple(
            r.model_copy(update={"explanation": said, "evidence": {"quote": said, said[:60]: 1}})
            for r in outcome.results
            if isinstance(r, Score)
        )
        return Outcome(results, outcome.call.model_copy(update={"raw": said}))

    return script


def empty_or_dead(unit: JudgeUnit) -> Outcome:
    """Every second run is an empty reply, which gets the worst level by rule; no other is rated."""
    if int(unit.run.id.rpartition("-")[2]) % 2:
        return failures(unit, ScriptedJudge().source, "error:infrastructure", "cannot connect")
    outcome = scores(unit, ScriptedJudge().source)
    worst = {"status": "degenerate", "value": 0.0, "label": LEVELS[0]}
    results = tuple(r.model_copy(update=worst) for r in outcome.results)
    return Outcome(results, outcome.call)


def refusing(unit: JudgeUnit) -> Outcome:
    """A judge that never answers in form."""
    return failures(unit, ScriptedJudge().source, "unscored:parse", "no JSON <b>here</b>")
