"""From the store to a ScoreTable: every rating of one judge, perturbed copies included."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import chain
from typing import Any

from agenteval.stats.scores import ORIGINAL, ScoreTable, TableBuilder
from agenteval.store import Store
from agenteval.trust.means import Rating, rank_within_problems


def scores_from_store(  # noqa: PLR0913  each narrows the choice
    store: Store,
    source_key: str,
    *,
    criteria: Collection[str],
    runs: Collection[str],
    repeats: int | None = None,
    variants: Collection[str] | None = None,
    copies: Collection[tuple[str, str]] | None = None,
    copies_by: str | None = None,
) -> ScoreTable:
    """Ratings of a judge on the criteria (content hashes) and runs (run keys of originals) named.

    Perturbed copies of these runs are among them, restricted to `variants` where given; with
    `copies` exactly these (run key, variant), so that copies made by an older program, which have
    the same variant and another text, stay out. `copies_by` is the source that rated these copies,
    where it is another than that of the originals.

    A copy goes by the id of its original. `relative` evidence, which only compares the runs of one
    problem, becomes a rank among the originals of the problem; a copy takes the place of its
    original there. Raises StoreError for a damaged store.
    """
    known = store.runs()
    sources = [source_key] if copies_by is None else [source_key, copies_by]
    judged = {k: c.id for source in sources for k, c in store.criteria_of(source).items()}
    ids = {key: name for key, name in judged.items() if key in criteria}
    wanted = set(runs)
    builder = TableBuilder()
    late: list[tuple[str, dict[str, str | None], Rating]] = []
    cells = chain.from_iterable(store.cells(source) for source in sources)
    for run_key, variant, criterion_key, repeat, status, label, value, detail in cells:
        run = known[run_key]
        if criterion_key not in ids or (repeats is not None and repeat >= repeats):
            continue
        if variants is not None and variant not in variants:
            continue
        if copies is None or variant == ORIGINAL:
            asked_for = (run_key if variant == ORIGINAL else run["origin"]) in wanted
        else:
            asked_for = (run_key, variant) in copies
        if not asked_for:
            continue
        texts = {
            "run": run["run_id"],
            "case": run["case_key"],
            "system": run["system"],
            "criterion": ids[criterion_key],
            "variant": variant,
            "status": status,
            "label": label,
        }
        success = None if run["success"] is None else bool(run["success"])
        if status == "relative":
            late.append((variant, texts, _rating(texts, success, repeat, detail)))
        else:
            builder.add(texts, repeat=repeat, success=success, value=value)
    for texts, rating in _ranked(late):
        texts["status"] = rating.status
        builder.add(texts, repeat=rating.repeat, success=rating.success, value=rating.value)
    return builder.table()


def _rating(texts: dict[str, Any], success: bool | None, repeat: int, detail: str) -> Rating:
    return Rating(
        run_id=texts["run"],
        system=texts["system"],
        case=texts["case"],
        success=success,
        criterion_id=texts["criterion"],
        repeat=repeat,
        status="relative",
        value=None,
        evidence=json.loads(detail).get("evidence", {}),
    )


def _ranked(
    late: list[tuple[str, dict[str, str | None], Rating]],
) -> list[tuple[dict[str, str | None], Rating]]:
    """Ranks of relative ratings: originals among each other, a copy among the other originals."""
    originals = [(t, r) for variant, t, r in late if variant == ORIGINAL]
    done = list(
        zip((t for t, _ in originals), rank_within_problems([r for _, r in originals]), strict=True)
    )
    groups: dict[tuple[str, str, int], list[Rating]] = {}
    for _, rating in originals:
        groups.setdefault((rating.criterion_id, rating.case, rating.repeat), []).append(rating)
    for variant, texts, copy in late:
        if variant == ORIGINAL:
            continue
        group = groups.get((copy.criterion_id, copy.case, copy.repeat), [])
        others = [r for r in group if r.run_id != copy.run_id]
        done.append((texts, rank_within_problems([copy, *others])[0]))
    return done
