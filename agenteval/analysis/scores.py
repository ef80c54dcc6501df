"""Load the ratings of one judge, including perturbed copies, into a ScoreTable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from itertools import chain
from typing import Any

from agenteval.analysis.rubrics import DROP_ITEM, ITEMS, RatedItem, item_run, items_of
from agenteval.records import RUBRIC, canonical_json
from agenteval.stats.scores import ORIGINAL, ScoreTable, TableBuilder
from agenteval.store import Store
from agenteval.store.browse import criteria_by_key
from agenteval.store.rows import decode

_FEW = 2_000  # up to this many runs, results are looked up by run


def run_names(items: Mapping[str, Mapping[str, Any]], keys: Iterable[str]) -> dict[str, str]:
    """Return the name of each run: its id, or SYSTEM/ID if several systems of a task have runs with
    that id. `items` are those of the store."""
    chosen = {key: items[key] for key in keys if key in items}
    systems: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for run in chosen.values():
        systems[run["task"], run["run_id"]].add(run["system"])
    return {
        key: run["run_id"]
        if len(systems[run["task"], run["run_id"]]) == 1
        else f"{run['system']}/{run['run_id']}"
        for key, run in chosen.items()
    }


def newest_runs(items: Mapping[str, Mapping[str, Any]], judged: Container[str]) -> set[str]:
    """Return the keys of the latest version of each judged run; `items` are those of the store, in
    order of use."""
    newest = {
        (run["task"], run["system"], run["run_id"]): key
        for key, run in items.items()
        if key in judged
    }
    return set(newest.values())


def scores_from_store(  # noqa: PLR0913  filters
    store: Store,
    source_key: str,
    *,
    criteria: Collection[str],
    runs: Collection[str],
    repeats: int | None = None,
    variants: Collection[str] | None = None,
    copies: Collection[tuple[str, str]] | None = None,
    copies_by: str | None = None,
    probabilities: bool = False,
    names: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
) -> ScoreTable:
    """Return the ratings of a judge on criteria (content hashes) and runs (keys of originals).

    Perturbed copies of these runs are included, restricted to `variants` if given, or to `copies`
    (run key, variant), which excludes copies with the same variant but another text by older
    versions. `copies_by` is the source that rated the copies, if it differs from `source_key`.
    `probabilities` includes the probabilities of levels.

    Runs are named by `names` (by key; default: `run_names`); a copy has the name of its original.
    The rating of a rubric is followed by those of its items (`agenteval.analysis.rubrics`), which
    have no success, because it belongs to the whole run. For copies by `drop_item`, only the
    dropped item is included; `targets` has its id by the key of the copy.
    Raises StoreError for a damaged store.
    """
    sources = [source_key] if copies_by is None else [source_key, copies_by]
    by_key = criteria_by_key(store, criteria)
    ids = {key: criterion.id for key, criterion in by_key.items()}
    rubrics = {key: c for key, c in by_key.items() if c.id == RUBRIC}
    newest: dict[str, str] = {}
    for source in sources if rubrics else ():
        newest |= store.rubrics_of(source)
    run_keys = set(runs)
    originals = variants is not None and set(variants) == {ORIGINAL}
    few = originals and len(run_keys) <= _FEW
    items, name = store.items(keys=run_keys if few else None), store.name_of(source_key)
    names = names or run_names(items, run_keys)
    builder = TableBuilder()
    cells = chain.from_iterable(
        store.cells(
            source, variant=ORIGINAL if originals else None, items=run_keys if few else None
        )
        for source in sources
    )
    for run_key, variant, criterion_key, repeat, status, label, value, detail in cells:
        run = items[run_key]
        if criterion_key not in ids or (repeats is not None and repeat >= repeats):
            continue
        if variants is not None and variant not in variants:
            continue
        if copies is None or variant == ORIGINAL:
            asked_for = (run_key if variant == ORIGINAL else run["origin"]) in run_keys
        else:
            asked_for = (run_key, variant) in copies
        if not asked_for or (criterion_key in rubrics and newest[run_key] != criterion_key):
            continue
        texts = {
            "run": names.get(run_key) or names.get(run["origin"]) or run["run_id"],
            "case": run["case_key"],
            "system": name if run["system"] is None else run["system"],
            "criterion": ids[criterion_key],
            "variant": variant,
            "status": status,
            "label": label,
        }
        if probabilities and '"probabilities"' in detail:
            masses = decode(detail, f"the result of run {run_key[:12]}").get("probabilities")
            texts["probabilities"] = masses and canonical_json(masses)
        success = None if run["success"] is None else bool(run["success"])
        builder.add(texts, repeat=repeat, success=success, value=value)
        if criterion_key in rubrics:
            of_copy = variant.startswith(DROP_ITEM)
            target = (targets or {}).get(run_key, "") if of_copy else None
            evidence = decode(detail, f"the result of run {run_key[:12]}").get("evidence", {})
            rated = items_of(rubrics[criterion_key], status, value, evidence)
            _add_items(builder, texts, rated, repeat, target)
    return builder.table()


def _add_items(
    builder: TableBuilder,
    texts: Mapping[str, Any],
    rated: Iterable[RatedItem],
    repeat: int,
    target: str | None,
) -> None:
    """Add the items of a rating with these `texts`; with a `target`, only the item of this id."""
    for answer in rated:
        if target in (None, answer.item.id):
            names = {"run": item_run(texts["run"], answer.item), "criterion": ITEMS, "label": None}
            row = {**texts, **names, "status": answer.status}
            builder.add(row, repeat=repeat, success=None, value=answer.value)
