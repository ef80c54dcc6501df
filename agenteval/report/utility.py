"""The page of a judge: what can be trusted, what was measured, what is missing, every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.report import plots
from agenteval.report.material import Material
from agenteval.report.page import (
    BadgeKind,
    Block,
    Columns,
    Gallery,
    Item,
    Items,
    Lines,
    Listing,
    Page,
    Piece,
    Section,
    Text,
    Tiles,
    Verdict,
    Words,
    badge,
    gallery,
    render,
)
from agenteval.report.runs import (
    RunItems,
    RunLine,
    run_items,
    run_lines,
    runs_table,
    worth_reading,
)
from agenteval.report.text import cut
from agenteval.report.utility_summary import measured, missing, not_shown, tiles
from agenteval.report.utility_tables import (
    checks_table,
    criteria_table,
    effects_table,
    missing_table,
    originals,
    systems_table,
)
from agenteval.stats.scores import ORIGINAL, Column, ScoreTable

MOST_RUNS = 500  # runs that can be opened
_MOST_NAMED = 20_000  # other runs whose names are listed
_MOST_LABELS = 12
_MOST_PANELS = 24
_MOST_CORRELATED = 40
_MEANINGS: dict[BadgeKind, str] = {
    "keep": "can be used",
    "repair": "need work before they can be used",
    "undecided": "the data do not tell",
    "drop": "should not be used",
}
_KINDS: dict[str, Any] = {"trustworthy": "trustworthy", "not trustworthy": "not-trustworthy",
                          "not enough data": "not-enough-data"}  # fmt: skip


def utility_page(material: Material, *, most_runs: int = MOST_RUNS) -> str:
    """The page as HTML. The same material gives the same text.

    At most `most_runs` runs can be opened, those farthest from their label first; the page says
    how many are left out. Raises StoreError when the texts cannot be read.
    """
    lines = run_lines(material)
    made = run_items(material, worth_reading(lines, most_runs))
    drawn, left_out = gallery(_plan(material))
    tables = {"systems": ("Systems", systems_table(material), ""),
              "perturbations": ("Perturbations", effects_table(material), _EFFECTS),
              "missing": ("Not rated", missing_table(material), _MISSING)}  # fmt: skip
    own = {
        key: Section(key, title, [Listing(table, titled=False)], lead)
        for key, (title, table, lead) in tables.items() if table is not None
    }  # fmt: skip
    sections = [
        Section("summary", "Summary", _summary(material, made, left_out)),
        _criteria(material),
        *(own[key] for key in ("systems", "perturbations") if key in own),
        *([Section("figures", "Figures", [Gallery(drawn)])] if drawn else []),
        *([own["missing"]] if "missing" in own else []),
        _runs(material, lines, made),
    ]
    facts = material.facts
    return render(Page("report", material.title, facts[0][1] if facts else "", sections,
                       material.unfinished, facts))  # fmt: skip


_EFFECTS = (
    "Original minus copy, as a share of the scale: positive where the copy scores lower. ✓ as "
    "expected before scoring, ✗ against it, ? cannot be told; what was expected stands with each "
    "criterion."
)
_MISSING = (
    "All judgements, those of perturbed copies included. A failure is never a score: it is counted "
    "here and in no mean."
)


def _summary(material: Material, made: RunItems, left_out: Sequence[str]) -> list[Block]:
    findings = material.findings
    judge = findings.judge if findings else None
    if judge is not None:
        lines = [*judge.reasons, *([f"Next: {judge.next_step}"] if judge.next_step else [])]
        head = Verdict("The judge on these criteria", judge.verdict, lines, _KINDS[judge.verdict])
    elif findings is not None:
        why = f"only the verdicts on criteria are known, {findings.origin}"
        head = Verdict("The judge on these criteria", "judge not verified", [why])
    else:
        head = Verdict("The judge on these criteria", "not verified", [material.unverified])
    warnings = judge.warnings if judge else ()
    lacking = [*missing(material), *not_shown(material, made), *left_out]
    return [
        head,
        *(Text([Piece("Warning ", "strong"), line], "warning") for line in warnings),
        Tiles(tiles(material, made.flags)),
        Columns(
            _trusted(material),
            [
                Lines(measured(material) or ["means of the judge's ratings"], "What was measured"),
                Lines(lacking or ["nothing: every judgement has a result"], "What is missing"),
            ],
        ),
    ]


def _trusted(material: Material) -> list[Block]:
    title = "What can be trusted"
    if material.findings is None:
        return [Text(["Not verified: run ", Piece("agenteval verify", "code"), ". Until then the "
                      "means below say what the judge answered, not whether the answers hold."],
                     title=title)]  # fmt: skip
    blocks: list[Block] = []
    for verdict, meaning in _MEANINGS.items():
        lines: list[Words] = [
            [Piece(material.names.get(one.criterion_id, one.criterion_id), "strong"), " ",
             Piece("; ".join(one.reasons[:2]), "quiet")]
            for one in material.findings.criteria if one.verdict == verdict
        ]  # fmt: skip
        if lines:
            blocks += [Text([badge(verdict, verdict), f" {meaning}"],
                            title="" if blocks else title),
                       Lines(lines, form="plain")]  # fmt: skip
    return blocks


def _criteria(material: Material) -> Section:
    items, links = [], {}
    for i, criterion in enumerate(material.criteria):
        links[criterion.name] = f"c-{i}"
        items.append(_criterion(material, criterion, f"c-{i}"))
    lead = (
        "Means run from 0 (worst level) to 1 (best). Intervals are 95 %, with cases as units: "
        "repeats of a case do not add to n. ✓ holds, ✗ does not, ? cannot be told."
    )
    table = Listing(criteria_table(material), links, titled=False)
    return Section("criteria", "Criteria", [table, Items(items)], lead)


def _criterion(material: Material, criterion: Criterion, id: str) -> Item:
    found = material.findings.of(criterion.id) if material.findings else None
    blocks: list[Block] = [Text(cut(criterion.description, 4000))]
    if criterion.accepted_values:
        order = "worst to best" if criterion.ordered else "in no known order, so without a mean"
        blocks.append(Text(f"Levels, {order}: {' → '.join(criterion.accepted_values)}", "quiet"))
    if criterion.order_reason:
        blocks.append(Text(f"Order: {criterion.order_reason}", "quiet"))
    if found:
        blocks += [Text(reason) for reason in found.reasons]
        blocks += [Text(f"Next: {found.next_step}")] if found.next_step else []
    if labels := _labels(material, criterion):
        blocks.append(Text(f"Answers: {labels}", "quiet"))
    if found and (found.checks or found.effects):
        blocks.append(checks_table(found))
    badges = [badge(found.verdict, found.verdict)] if found else []
    return Item(id, criterion.name, blocks, badges)


def _labels(material: Material, criterion: Criterion) -> str:
    """How often which label was given to originals, the levels in their order."""
    own = originals(material).of(criterion=criterion.id)
    codes = own.label.codes[own.label.codes >= 0]
    counts = Counter({own.label.names[c]: n for c, n in Counter(codes.tolist()).items()})
    order = [v for v in criterion.accepted_values if v in counts]
    order += [v for v, _ in counts.most_common() if v not in order]
    listed = [f"{cut(v, 80)} {counts[v]:,}" for v in order[:_MOST_LABELS]]
    rest = len(order) - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")


def _runs(material: Material, lines: Sequence[RunLine], made: RunItems) -> Section:
    here = {line.run for line in made.lines}
    others = [line.run for line in lines if line.run not in here]
    count = f"{len(here):,} of {len(lines):,} runs." if others else f"{len(lines):,} runs."
    lead = (
        f"{count} Choose one to see what the judge saw and said. Gap is the distance of a run's "
        "mean from its label (1 success, 0 failed), spread the largest difference between two "
        "repeats of one criterion."
    )
    links = {item.title: item.id for item in made.items}
    blocks: list[Block] = [
        Listing(runs_table(made.lines), links, find=True, titled=False),
        Items(made.items),
    ]
    if material.show:
        command = Piece(material.show.replace("{run}", "ID"), "code")
        blocks.insert(0, Text(["From the command line: ", command], "note"))
    if others:
        listed = ", ".join(others[:_MOST_NAMED])
        if len(others) > _MOST_NAMED:
            listed += f" and {len(others) - _MOST_NAMED:,} more"
        title = f"{len(others):,} runs that are not on this page"
        blocks.append(Items([Item("", title, [Text(listed, "note")])]))
    return Section("runs", "Runs", blocks, lead)


def _plan(material: Material) -> list[tuple[str, str, Callable[[], Any]]]:
    table = _named(material)
    copies = set(table.present("variant")) - {ORIGINAL}
    doses = {v.partition(":")[2].partition(":")[0] for v in copies} - {"-", ""}
    verdicts = material.findings.criteria if material.findings else ()
    plan: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "Which criteria hold",
            "Agreement of repeats beside discrimination of success, with the verdict.",
            lambda: plots.verdict_points(verdicts, material.names),
        ),
        (
            "Success and failed",
            "Mean per criterion and system. A criterion that means something sets them apart.",
            lambda: plots.success_bars(table),
        ),
        ("Systems", "Mean of every system on every criterion.", lambda: plots.radar(table)),
    ]
    if int(table.repeat.max(initial=0)) > 0:
        plan.append((
            "Repeats",
            "Means at every repeat of the judge: lines that wander are noise of the judge.",
            lambda: plots.repeat_lines(_few(table, _MOST_PANELS)),
        ))  # fmt: skip
    if copies:
        plan.append((
            "Originals and perturbed copies",
            "A copy that lost something should score lower, a control the same.",
            lambda: plots.perturbation_bars(table),
        ))  # fmt: skip
    if len(doses) > 1:
        plan.append((
            "Dose and response",
            "The more is taken away, the lower the rating should be.",
            lambda: plots.dose_lines(_few(table, _MOST_PANELS)),
        ))  # fmt: skip
    plan += [
        (
            "Criteria that say the same",
            "Spearman correlation of the runs' means.",
            lambda: plots.correlation_map(_few(table, _MOST_CORRELATED)),
        ),
        (
            "Coverage",
            "What became of every judgement.",
            lambda: plots.coverage_bars(table),
        ),
    ]
    return plan


def _named(material: Material) -> ScoreTable:
    """The table with criteria under their names, as far as these differ."""
    table = material.table
    names = tuple(material.names.get(i, i) for i in table.criterion.names)
    if len(set(names)) < len(names):
        return table
    return replace(table, criterion=Column(table.criterion.codes, names))


def _few(table: ScoreTable, most: int) -> ScoreTable:
    if len(table.present("criterion")) > most:
        raise InputError(f"more than {most} criteria")
    return table
