"""The fixture `judge` of `pytest_plugin`: each call judges one run and stores the result."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy import select

from agenteval.analysis.means import load_ratings
from agenteval.analysis.tables import score_tables, score_title, spent
from agenteval.cli.running import Watch, opened, run_sync
from agenteval.engine import CostEstimate
from agenteval.errors import AgentevalError, InputError
from agenteval.models.limits import Limits, Price
from agenteval.readers.messages import parse_messages
from agenteval.records import Criterion, Failure, Message, Run, Score, Task, Usage
from agenteval.reporting.estimate import print_estimate
from agenteval.reporting.terminal import print_table
from agenteval.stats.scores import ORIGINAL
from agenteval.store import schema
from agenteval.store.connect import reading
from agenteval.store.rows import to_result
from agenteval.text import plural, visible_line
from agenteval.utility.api import quantify_estimate
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.judging import AnyJudge, Criteria, Judging, read_judging
from agenteval.utility.options import JudgeOptions

_ROUNDING = 1e-9  # 2 of 3 levels reach a threshold of 2/3


class JudgeFailed(AgentevalError):
    """Raised when the judge gave no required score: the test neither passed nor failed."""


@dataclass(frozen=True)
class Judged:
    """The judge's ratings of one run.

    `values` has the mean over repeats by id of the criterion (0 the worst level, 1 the best), or
    None if it does not apply or its levels have no order. `scores` and `failures` are the single
    results, with label and explanation, or status and message.
    """

    values: Mapping[str, float | None]
    scores: tuple[Score, ...]
    failures: tuple[Failure, ...]


class Judge:
    """The fixture. Call it with the input of an agent and its answer or trajectory.

    Its arguments are those of the marker. `threshold` is the minimum of every criterion, or a
    mapping for some of them by id or name; None sets no minimum. Paths and names of tasks are
    relative to the folder in which pytest was started, even if the test changes the folder. `told`
    has plain values of each call for the summary, and `trouble` the reason for an error.
    """

    def __init__(  # noqa: PLR0913  what a marker may say
        self,
        item: pytest.Item,
        *,
        threshold: float | Mapping[str, float] | None,
        model: AnyJudge = None,
        criteria: Criteria | None = None,
        task: str | Task | None = None,
        base_url: str | None = None,
        repeats: int = 1,
        temperature: float | None = 1.0,
        with_reference: bool = False,
    ) -> None:
        self.told: list[dict[str, Any]] = []
        self.trouble: str | None = None
        self._threshold = threshold
        self._asked: dict[str, Any] = {
            "judge": model,
            "task": task,
            "base_url": base_url,
            "repeats": repeats,
            "temperature": temperature,
            "with_reference": with_reference,
        }
        self._criteria = criteria
        self._config = item.config
        file, _, name = item.location  # not the node id: xdist writes groups into it
        self._test = f"{file}::{name}".replace("\\", "/")
        self._calls = 0

    def __call__(
        self,
        *,
        input: str = "",
        output: str = "",
        reference: str | None = None,
        messages: Sequence[Message | Mapping[str, Any]] = (),
    ) -> Judged:
        """Judge one run: `input` is what the agent was asked, `output` its answer, `messages` its
        whole trajectory in the form of OpenAI. The reference is shown to the judge only
        `with_reference`, and used by criteria that are computed.

        Raises AssertionError when a criterion is below its threshold, JudgeFailed when the judge
        gave no score, or another AgentevalError; these make the test an error. In a dry run it
        skips the test.
        """
        __tracebackhide__ = True
        self._calls += 1
        try:
            listed = [m.model_dump() if isinstance(m, Message) else dict(m) for m in messages]
            talk = parse_messages(listed, "messages", self._test)
            run = Run(
                id=self._test if self._calls == 1 else f"{self._test}#{self._calls}",
                input=input,
                output=output or talk.answer or "",
                messages=tuple(talk.messages),
                reference=reference,
            )
            with chdir(self._config.invocation_params.dir):
                judged, lines = self._judged(run)
        except AgentevalError as error:
            self.trouble = f"{type(error).__name__}: {error}"
            raise error.with_traceback(None) from None  # its line says it; shown is the test's own
        if lines:
            raise AssertionError("\n  ".join(("below the threshold", *lines)))
        return judged

    def _judged(self, run: Run) -> tuple[Judged, list[str]]:
        """Return the ratings, and the lines of an assertion when a threshold is missed."""
        option = self._config.option
        options = JudgeOptions(
            **self._asked,
            limits=limits_of(option),
            retry_failed=option.agenteval_retry_failed,
            dry_run=option.agenteval_dry_run,
            store=option.agenteval_store,
        )
        judging = read_judging([run], self._criteria, options, Watch())
        thresholds = self._thresholds(judging.all_criteria)
        if option.agenteval_dry_run:
            self._skip(judging)
        results, stopped = self._results(judging)
        scores = tuple(r for r in results if isinstance(r, Score))
        failures = tuple(r for r in results if isinstance(r, Failure))
        values: dict[str, float | None] = {}
        lines, missing, below = [], [], False
        for criterion in judging.all_criteria:
            criterion_scores = [score for score in scores if score.criterion_id == criterion.id]
            failed = next((f for f in failures if f.criterion_id == criterion.id), None)
            valued = [score.value for score in criterion_scores if score.value is not None]
            value = values[criterion.id] = fmean(valued) if valued else None
            least = thresholds.get(criterion.id)
            line = f"{criterion.name}: "
            if failed is not None or len(criterion_scores) < judging.repeats:
                why = f"{failed.status}: {failed.message}" if failed else stopped or "not judged"
                if least is not None or not isinstance(self._threshold, Mapping):
                    missing.append(visible_line(line + why))
            elif least is not None:
                line += ", ".join(dict.fromkeys(s.label or s.status for s in criterion_scores))
                if value is not None:
                    less = value < least - _ROUNDING
                    below = below or less
                    line += f" ({value:.2f}), {'below' if less else 'not below'} {least:g}"
                why = next((f": {s.explanation}" for s in criterion_scores if s.explanation), "")
                lines.append(visible_line(line + why))
        if missing:
            raise JudgeFailed("\n  ".join(("the judge gave no score", *missing)))
        if thresholds and all(values[key] is None for key in thresholds):
            raise JudgeFailed("no criterion with a threshold applies: nothing was rated")
        return Judged(values, scores, failures), lines if below else []

    def _thresholds(self, criteria: Sequence[Criterion]) -> dict[str, float]:
        """Return the minimum by id of the criterion."""
        thresholds, by_name = self._threshold, {k: c for c in criteria for k in (c.id, c.name)}
        if thresholds is None:
            return {}
        if not isinstance(thresholds, Mapping):
            thresholds = {c.id: thresholds for c in criteria if c.ordered}
        for name, least in thresholds.items():
            if name not in by_name or not by_name[name].ordered:
                ordered = ", ".join(c.id for c in criteria if c.ordered)
                raise InputError(
                    f"no ordered criterion is called {name!r}; choose from {ordered}", "threshold"
                )
            if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
                raise InputError(f"{least!r} is not a number from 0 to 1", "threshold")
        if not thresholds:
            raise InputError("no criterion has an order: the test could not fail", "threshold")
        return {by_name[name].id: float(least) for name, least in thresholds.items()}

    def _skip(self, judging: Judging) -> None:
        """Record the requests that would be sent, and skip the test."""
        estimate = run_sync(quantify_estimate(judging))
        source = judging.evaluator(None)[0].source
        self._tell(judging, source.sha256, judge=source.model, estimate=estimate)
        least = estimate.least.requests
        pytest.skip(f"dry run: {least} to {estimate.most.requests} requests")

    def _results(self, judging: Judging) -> tuple[list[Score | Failure], str | None]:
        """Return all results, judging those that the store lacks, and the reason for missing ones.
        Every run has its own lock, so that workers of one suite can judge at the same time."""
        ((_, view),) = judging.items
        with opened(self._config.option.agenteval_store) as store:
            evaluator, client = judging.evaluator(store)
            source = evaluator.source.sha256
            rated = JudgeEvaluator.of(
                evaluator, judging.items, judging.criteria, judging.repeats, view.sha256
            )
            ended = run_sync(judging.run(rated, client, store))
            usage = ended.progress.usage.model_dump()
            self._tell(judging, source, run=view.sha256, repeats=judging.repeats, usage=usage)
            r, c = schema.results.c, schema.items.c
            query = (  # uses the index: a suite of many tests reads each result once
                select(schema.results, c.id.label("criterion_id"))
                .join(schema.items, c.item_key == r.criterion_key)
                .where(r.source_key == source, r.item_key == view.sha256, r.variant == ORIGINAL)
                .where(
                    r.criterion_key.in_([criterion.sha256 for criterion in judging.all_criteria])
                )
                .where(r.repeat < judging.repeats)
                .order_by(c.id, r.repeat)
            )
            with reading(store.engine) as connection:
                return [to_result(row) for row in connection.execute(query)], ended.stopped

    def _tell(self, judging: Judging, source: str, **more: Any) -> None:
        keys = [criterion.sha256 for criterion in judging.all_criteria]
        self.told.append({"of": [source, *keys], "notes": judging.watch.notes, **more})


def limits_of(option: Any) -> Limits:
    """The caps and prices of the command line. Raises InputError for one price alone."""
    prices = option.agenteval_price_in, option.agenteval_price_out
    if prices.count(None) == 1:
        raise InputError("both prices are needed to compute a cost", "--agenteval-price")
    price = None if None in prices else Price(*prices)
    return Limits(
        max_calls=option.agenteval_max_calls, max_cost=option.agenteval_max_cost, price=price
    )


def summary(told: Sequence[Mapping[str, Any]], option: Any, width: int) -> str:
    """Print the results of this session for every judge and set of criteria, as `quantify` does, or
    the estimate after a dry run."""
    console = Console(file=(text := io.StringIO()), width=width, highlight=False, emoji=False)
    for note in dict.fromkeys(note for record in told for note in record["notes"]):
        console.print(visible_line(note), markup=False, soft_wrap=True)
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for record in told:
        groups.setdefault(tuple(record["of"]), []).append(record)
    for (source, *keys), group in groups.items():
        if option.agenteval_dry_run:
            print_estimate(_estimate(group, limits_of(option)), console)
            continue
        with opened(option.agenteval_store, create=False) as store:
            judge, criteria_by_key = dict(store.sources())[source], store.criteria_of(source)
            ratings = load_ratings(
                store,
                source,
                run_keys=[record["run"] for record in group],
                criterion_keys=keys,
                repeats=max(record["repeats"] for record in group),
            )
        usage = sum((Usage.model_validate(record["usage"]) for record in group), Usage())
        foot = (
            "intervals use cases as units: tests with the same input are one case",
            f"asked now: {spent(usage)}; store: {store.shown}",
        )
        criteria = [criteria_by_key[key] for key in keys if key in criteria_by_key]
        console.print(visible_line(score_title(judge, criteria, ratings)), markup=False)
        print_table(score_tables(ratings, criteria, foot=foot)[0], console)
    return re.sub(r"--(?=price-|max-)", "--agenteval-", text.getvalue().strip())


def _estimate(group: Sequence[Mapping[str, Any]], limits: Limits) -> CostEstimate:
    """Return the estimate of all skipped tests for one judge."""
    estimates: list[CostEstimate] = [test["estimate"] for test in group]
    about = f"{plural(len(group), 'test')} skipped; judge: {group[0]['judge']}"
    budget = limits.budget(estimates[0].budget.spent)
    total = CostEstimate(command="pytest", about=(), budget=budget)
    for estimate in estimates:
        total += replace(estimate, about=())
    return replace(total, about=(about,))
