"""The page of a judge: verdict, measurements, missing results, and every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from agenteval.analysis.flagged import Flags
from agenteval.analysis.means import lines_on_failed_runs
from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.records.table import Table, shown
from agenteval.reporting import plots
from agenteval.reporting.page import (
    Answer,
    AnswerKind,
    Block,
    Columns,
    Foldout,
    Fragment,
    Items,
    Lines,
    Listing,
    Page,
    PageSection,
    Plan,
    Text,
    Tile,
    Tiles,
    badge,
    figures,
    render,
    with_code,
)
from agenteval.reporting.text import cut, listed, variant_label
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.text import plural
from agenteval.utility.page_data import JudgeMaterial
from agenteval.utility.page_runs import (
    RunLine,
    flags_of_runs,
    run_items,
    run_lines,
    runs_table,
    worth_reading,
)
from agenteval.utility.page_tables import (
    checks_table,
    criteria_table,
    missing_table,
    rated_share,
    systems_table,
    trust_table,
)
from agenteval.utility.tables import effects_table, evidence_by_system, evidence_table, set_lines

MOST_RUNS = 500  # runs that can be opened
_KINDS: dict[str, AnswerKind] = {"trustworthy": "trustworthy", "not trustworthy": "not-trustworthy"}


def utility_page(material: JudgeMaterial, *, most_runs: int = MOST_RUNS) -> str:
    """Return the page as HTML. The same material gives the same text.

    At most `most_runs` runs can be opened, those farthest from their label first; the page says
    how many are left out. Raises StoreError when the texts cannot be read.
    """
    lines = run_lines(material)
    opened, flags = worth_reading(lines, most_runs), flags_of_runs(material)
    verdicts = material.findings.criteria if material.findings else ()
    rubrics: list[Block] = [Listing(table) for table in material.rubrics]
    sections = [
        PageSection("summary", "Summary", _summary(material, len(opened), flags)),
        _criteria(material),
        PageSection("rubrics", "Rubrics", rubrics),
        _section("systems", "Systems", systems_table(material)),
        _section(
            "perturbations",
            "Perturbations",
            effects_table(verdicts, material.names),
            "Original minus copy, as a share of the scale: positive where the copy scores lower. "
            "✓ as expected before scoring, ✗ refuted, ? undecided.",
        ),
        figures(_plan(material)),
        _section(
            "missing",
            "Not rated",
            missing_table(material),
            "All judgements, including those of perturbed copies. Failures are counted here and "
            "never enter a mean.",
        ),
        _runs(material, lines, opened, run_items(material, opened, flags)),
    ]
    lead = material.facts[0][1] if material.facts else ""
    return render(
        Page("report", material.title, lead, sections, material.unfinished, material.facts)
    )


def _section(id: str, title: str, table: Table | None, lead: str = "") -> PageSection:
    """Return a section of one table; without rows it is empty and left out."""
    blocks = [Listing(table, titled=False)] if table and table.rows else ()
    return PageSection(id, title, blocks, lead)


def _summary(material: JudgeMaterial, opened: int, flags: Flags) -> list[Block]:
    findings = material.findings
    judge = findings.judge if findings else None
    text, lines = "not verified", [material.unverified]
    kind: AnswerKind = ""
    if judge is not None:
        lines = [*judge.reasons, *([f"Next: {judge.next_step}"] if judge.next_step else [])]
        text, kind = judge.verdict, _KINDS.get(judge.verdict, "not-enough-data")
    elif findings is not None:
        text = "judge not verified"
        lines = [f"only the verdicts on criteria are available, {findings.origin}"]
    warnings = judge.warnings if judge else ()
    tables = [evidence_table(judge), evidence_by_system(judge)] if judge else []
    trusted: Block
    if findings is not None:
        links = {c.name: f"c-{i}" for i, c in enumerate(material.criteria)}
        trusted = Listing(trust_table(findings.criteria, material.names), links)
    else:
        meaning = "the means below show the judge's answers, not whether they can be trusted."
        words = with_code(f"Not verified: run `agenteval verify`. Until then {meaning}")
        trusted = Text(words, title="What can be trusted")
    missing = _missing(material)
    runs = len(material.originals.present("run"))
    if opened < runs:
        missing.append(
            f"{opened:,} of {runs:,} runs can be opened here, those farthest from their label "
            "first; the others are listed below"
        )
    return [
        Answer("The judge on these criteria", text, [with_code(line) for line in lines], kind),
        *(Text([Fragment("Warning ", "strong"), line], "warning") for line in warnings),
        trusted,
        *(Listing(table) for table in tables if table.rows),
        Tiles(_tiles(material, flags)),
        Columns(
            [Lines(_measured(material) or ["means of the judge's ratings"], "Measurements")],
            [Lines(missing or ["none: every judgement has a result"], "Missing results")],
        ),
    ]


def _tiles(material: JudgeMaterial, flags: Flags) -> list[Tile]:
    table, everything = material.originals, material.table
    numbers = {
        "run": len(table.present("run")),
        "case": len(table.present("case")),
        "system": max(len(table.present("system")), 1),
        "criterion": len(material.criteria),
        "repeat": int(table.repeat.max(initial=-1)) + 1,
        "judgement": len(everything),
    }
    return [
        *((n, plural(n, name).rpartition(" ")[2]) for name, n in numbers.items()),
        (shown(rated_share(everything), "share"), "rated"),
        *([flags.tile] if flags.examined else ()),
    ]


def _measured(material: JudgeMaterial) -> list[str]:
    """Return sentences about what was judged and verified."""
    table, findings = material.originals, material.findings
    first = np.unique(table.run.codes, return_index=True)[1]
    sides = Counter(table.success[first].tolist())
    lines = []
    if labelled := sides[1] + sides[0]:
        lines.append(
            f"success is known for {labelled:,} of {len(first):,} runs: "
            f"{sides[1]:,} successful, {sides[0]:,} failed"
        )
    if variants := [v for v in material.table.present("variant") if v != ORIGINAL]:
        labels = ", ".join(variant_label(v, variants) for v in variants)
        count = f"{len(material.table) - len(table):,} judgements of them"
        lines.append(f"{plural(len(variants), 'kind')} of perturbed copies, {count}: {labels}")
    if findings is not None:
        options = findings.verified.options if findings.verified else {}
        values = ", ".join(f"{k.replace('_', ' ')} {value:g}" for k, value in options.items())
        lines.append(f"verdicts {findings.origin}{f' with {values}' if values else ''}")
        if findings.verified:
            lines += set_lines(findings.verified, material.names)
    return lines


def _missing(material: JudgeMaterial) -> list[str]:
    """Return sentences about what is unknown, or known of some runs only."""
    table = material.originals
    lines = [*material.notes, *lines_on_failed_runs(table)]
    if not (table.success >= 0).any():
        lines.append("success is unknown for every run: criteria cannot be checked against it")
    elif (table.success < 0).any():
        unknown = len(np.unique(table.run.codes[table.success < 0]))
        lines.append(f"success is unknown for {unknown:,} runs: they are in neither group")
    if int(table.repeat.max(initial=0)) == 0:
        lines.append("every run was judged once: the agreement of repeats is unknown")
    if len(table.present("system")) < 2:
        lines.append("there is only one system, so there is no comparison")
    counts = {n: c for n, c in material.table.statuses().items() if ":" in n}
    if counts:
        kinds = ", ".join(f"{c:,} {n}" for n, c in sorted(counts.items()))
        total = f"{sum(counts.values()):,} of {len(material.table):,}"
        lines.append(f"{total} judgements have no result: {kinds}")
    return [*lines, *_without_ratings(material)]


def _without_ratings(material: JudgeMaterial) -> Iterator[str]:
    """Yield criteria that lack ratings or an order, and perturbations that lack copies."""
    table, runs = material.originals, len(material.originals.present("run"))
    for criterion in material.criteria:
        ratings = table.of(criterion=criterion.id)
        failed, empty = int(ratings.failed.sum()), len(ratings.of(status="degenerate"))
        if len(ratings) and failed + empty == len(ratings):
            empties = f" ({plural(empty, 'empty reply')})" if empty else ""
            yield f"{criterion.name}: never rated{empties}"
        elif failed > 0.2 * len(ratings):
            yield f"{criterion.name}: {failed / len(ratings):.0%} without a result"
        if not criterion.ordered:
            yield f"{criterion.name}: its levels have no order, so it has no mean"
    for variant in material.table.present("variant"):
        copies = len(material.table.of(variant=variant).present("run"))
        if variant != ORIGINAL and copies < runs:
            yield (
                f"{variant_label(variant, table.variant.names)}: {runs - copies:,} of {runs:,} "
                "runs have no judged copy (the copy equals the original or was not judged)"
            )


def _criteria(material: JudgeMaterial) -> PageSection:
    items, links = [], {}
    for i, criterion in enumerate(material.criteria):
        links[criterion.name] = f"c-{i}"
        items.append(_criterion(material, criterion, f"c-{i}"))
    lead = (
        "Means run from 0 (worst level) to 1 (best). Intervals are 95%, with cases as units: "
        "repeats of a case do not add to n. ✓ passes, ✗ fails, ? undecided."
    )
    table = Listing(criteria_table(material), links, titled=False)
    return PageSection("criteria", "Criteria", [table, Items(items)], lead)


def _criterion(material: JudgeMaterial, criterion: Criterion, id: str) -> Foldout:
    verdict = material.findings.of(criterion.id) if material.findings else None
    blocks: list[Block] = [Text(cut(criterion.description, 4000))]
    if criterion.accepted_values:
        order = "worst to best" if criterion.ordered else "without a known order, so without a mean"
        blocks.append(Text(f"Levels, {order}: {' → '.join(criterion.accepted_values)}", "quiet"))
    if criterion.order_reason:
        blocks.append(Text(f"Order: {criterion.order_reason}", "quiet"))
    if verdict:
        blocks += [Text(reason) for reason in verdict.reasons]
        blocks += [Text(with_code(f"Next: {verdict.next_step}"))] if verdict.next_step else []
    # how often each label was given to originals, the levels in their order
    labels = material.originals.of(criterion=criterion.id).label
    counts = Counter(labels.names[code] for code in labels.codes if code >= 0)
    levels = [v for v in criterion.accepted_values if v in counts]
    levels += [v for v, _ in counts.most_common() if v not in levels]
    if levels:
        answers = listed([f"{cut(v, 80)} {counts[v]:,}" for v in levels], 12)
        blocks.append(Text(f"Answers: {answers}", "quiet"))
    if verdict and (verdict.checks or verdict.effects):
        blocks.append(checks_table(verdict))
    badges = [badge(verdict.verdict, verdict.verdict)] if verdict else []
    return Foldout(id, criterion.name, blocks, badges)


def _runs(
    material: JudgeMaterial,
    lines: Sequence[RunLine],
    opened: Sequence[RunLine],
    items: Sequence[Foldout],
) -> PageSection:
    here = {line.run for line in opened}
    omitted = [line.run for line in lines if line.run not in here]
    count = f"{len(here):,} of {len(lines):,} runs." if omitted else f"{len(lines):,} runs."
    lead = (
        f"{count} Choose a run to see the judge's input and output. Gap is the distance of a run's "
        "mean from its label (1 success, 0 failed), spread the largest difference between two "
        "repeats of one criterion."
    )
    links = {item.title: item.id for item in items}
    blocks: list[Block] = [
        Listing(runs_table(opened), links, find=True, titled=False),
        Items(items),
    ]
    if material.show:
        command = Fragment(material.show.replace("{run}", "ID"), "code")
        blocks.insert(0, Text(["From the command line: ", command], "note"))
    if omitted:
        title = f"{len(omitted):,} runs not on this page"
        blocks.append(Items([Foldout("", title, [Text(listed(omitted, 20_000), "note")])]))
    return PageSection("runs", "Runs", blocks, lead)


def _plan(material: JudgeMaterial) -> Plan:
    """Return the charts: title, caption, and the function that draws it."""
    table = plots.with_names(material.table, material.names)
    copies = set(table.present("variant")) - {ORIGINAL}
    doses = {v.partition(":")[2].partition(":")[0] for v in copies} - {"-", ""}
    verdicts = material.findings.criteria if material.findings else ()
    labels = {
        v.criterion_id: f"{material.names.get(v.criterion_id, v.criterion_id)}: {v.verdict}"
        for v in verdicts
    }
    plan: Plan = [
        (
            "Which criteria can be kept",
            "Agreement of repeats and discrimination of success, with the verdict.",
            lambda: plots.judge_points({"judge": verdicts}, labels),
        ),
        (
            "Success and failed",
            "Mean per criterion for successful and failed runs. A meaningful criterion separates "
            "them.",
            lambda: plots.success_bars(table),
        ),
        ("Systems", "Mean of every system on every criterion.", lambda: plots.radar(table)),
        (
            "Repeats",
            "Mean at each repeat. Lines that move up and down show noise of the judge.",
            lambda: plots.repeat_lines(_few(table, 24)),
        ),
        (
            "Originals and perturbed copies",
            "A damaged copy should score lower, a control copy the same.",
            lambda: plots.perturbation_bars(table),
        ),
        (
            "Dose and response",
            "The more is removed, the lower the rating should be.",
            lambda: plots.dose_lines(_few(table, 24)),
        ),
        (
            "Redundant criteria",
            "Spearman correlation of the runs' means.",
            lambda: plots.correlation_map(_few(table, 40)),
        ),
        ("Coverage", "Outcome of every judgement.", lambda: plots.coverage_bars(table)),
    ]
    empty = {
        "Repeats": int(table.repeat.max(initial=0)) == 0,
        "Originals and perturbed copies": not copies,
        "Dose and response": len(doses) < 2,
    }
    return [chart for chart in plan if not empty.get(chart[0])]


def _few(table: ScoreTable, most: int) -> ScoreTable:
    if len(table.present("criterion")) > most:
        raise InputError(f"more than {most} criteria")
    return table
