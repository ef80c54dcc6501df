"""ScoreTable: ratings stored in columns, so that millions of them fit into a few arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ORIGINAL = "original"
ONLY_EMPTY = "only empty replies, which get the worst level by rule"  # reason without a mean
NAMED = ("run", "case", "system", "criterion", "variant", "status", "label", "probabilities")


def split_variant(variant: str) -> tuple[str, str]:
    """Return the operator and share (text) in a variant's name `operator:share:seed`.

    The share is "" if the name has none, as in `whitespace:-:7` or `mine`.
    """
    operator, _, parameters = variant.partition(":")
    written = parameters.partition(":")[0]
    return operator, "" if written == "-" else written


@dataclass(frozen=True)
class CodedColumn:
    """Texts by code: row i has `names[codes[i]]`; code -1 means no text."""

    codes: Codes
    names: tuple[str, ...]

    def code(self, name: str) -> int:
        """Return the code of a name; -2, which no row has, for an unknown name."""
        try:
            return self.names.index(name)
        except ValueError:
            return -2

    def take(self, mask: Mask) -> CodedColumn:
        """Return the rows of a mask with the same names."""
        return CodedColumn(self.codes[mask], self.names)


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run of a table with its case and, if known, its system."""

    run: str
    case: str
    system: str | None


@dataclass(frozen=True)
class ScoreTable:
    """One row per rating: every column has n rows.

    `value` is in [0, 1] if the rating counts in a mean, NaN otherwise (a failure, not applicable, a
    nominal label). `success` is 1, 0, or -1 if unknown. `status` is that of the Score or Failure; a
    failure has a colon in it. `repeat` counts from 0. `probabilities` of the levels are JSON text,
    or empty if the judge returns none or they were not requested.
    """

    run: CodedColumn
    case: CodedColumn
    system: CodedColumn
    criterion: CodedColumn
    variant: CodedColumn
    status: CodedColumn
    label: CodedColumn
    probabilities: CodedColumn
    repeat: Codes
    success: NDArray[np.int8]
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    def where(self, mask: Mask) -> ScoreTable:
        """Return the rows of a mask (n,), in order."""
        columns = {name: getattr(self, name).take(mask) for name in NAMED}
        return ScoreTable(
            **columns,
            repeat=self.repeat[mask],
            success=self.success[mask],
            value=self.value[mask],
        )

    def of(self, **names: str) -> ScoreTable:
        """Return rows with these names, e.g. `of(criterion="clarity", variant="original")`."""
        mask = np.ones(len(self), dtype=np.bool_)
        for column, name in names.items():
            part: CodedColumn = getattr(self, column)
            mask &= part.codes == part.code(name)
        return self.where(mask)

    def present(self, column: str) -> list[str]:
        """Return the names that occur in a column, in code order."""
        part: CodedColumn = getattr(self, column)
        seen = np.unique(part.codes)
        return [part.names[i] for i in seen if i >= 0]

    @property
    def failed(self) -> Mask:
        """Mask (n,) of rows that are failures."""
        bad = np.array([":" in name for name in self.status.names] + [False], dtype=np.bool_)
        return bad[self.status.codes]

    def statuses(self) -> dict[str, int]:
        """Return the number of ratings by status."""
        counts = np.bincount(self.status.codes, minlength=len(self.status.names))
        return {n: int(c) for n, c in sorted(zip(self.status.names, counts, strict=True)) if c}

    def runs_by_status(self, start: str) -> dict[str, list[str]]:
        """Return the names of runs with a status that starts with `start`, by the remainder."""
        codes_by_status = {
            status.removeprefix(start): np.unique(self.run.codes[self.status.codes == code])
            for code, status in enumerate(self.status.names)
            if status.startswith(start)
        }
        return {
            k: sorted(self.run.names[c] for c in runs)
            for k, runs in codes_by_status.items()
            if len(runs)
        }

    def entries(self) -> set[RunEntry]:
        """Yield every run with its case and system."""
        codes = zip(self.run.codes, self.case.codes, self.system.codes, strict=True)
        return {
            RunEntry(
                self.run.names[run],
                self.case.names[case],
                self.system.names[system] if system >= 0 else None,
            )
            for run, case, system in set(codes)
        }

    def matrix(self) -> Matrix:
        """Return the values of one criterion and variant as runs × repeats.

        Rows are the runs in code order, including those without a value. Raises ValueError if a run
        has two ratings of the same repeat, as in a table with several criteria.
        """
        runs, row = np.unique(self.run.codes, return_inverse=True)
        repeats, repeat = np.unique(self.repeat, return_inverse=True)  # any numbers may occur
        width = len(repeats)
        place = row.astype(np.int64) * max(width, 1) + repeat
        if len(np.unique(place)) < len(place):
            raise ValueError("several ratings of one run and repeat: choose criterion and variant")
        values = np.full((len(runs), width), np.nan)
        values[row, repeat] = self.value
        first = np.zeros(len(runs), dtype=np.intp)
        first[row[::-1]] = np.arange(len(row))[::-1]
        return Matrix(
            values,
            runs.astype(np.int32),
            self.case.codes[first],
            self.system.codes[first],
            self.success[first],
        )


@dataclass(frozen=True)
class Matrix:
    """Ratings of one criterion and variant.

    `values` is (runs, repeats) with NaN for missing values; `run`, `case` and `system` are codes of
    the table's columns, and `success` is 1, 0 or -1, one entry per row.
    """

    values: Floats
    run: Codes
    case: Codes
    system: Codes
    success: NDArray[np.int8]

    @property
    def mean(self) -> Floats:
        """Mean over the repeats of each run (runs,), NaN for runs without values."""
        rated = ~np.isnan(self.values)
        total = np.where(rated, self.values, 0).sum(axis=1)
        count = rated.sum(axis=1)
        mean = np.full(len(total), np.nan)
        np.divide(total, count, out=mean, where=count > 0)
        return mean


class TableBuilder:
    """Collects ratings one by one; `table` turns them into columns."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, int]] = {name: {} for name in NAMED}
        self._codes: dict[str, list[int]] = {name: [] for name in NAMED}
        self._repeat: list[int] = []
        self._success: list[int] = []
        self._value: list[float] = []

    def add(
        self,
        texts: Mapping[str, str | None],
        *,
        repeat: int,
        success: bool | None,
        value: float | None,
    ) -> None:
        """Add one rating; `texts` has an entry for every named column (probabilities are optional),
        or None."""
        for column in NAMED:
            text = texts.get(column) if column == "probabilities" else texts[column]
            names = self._names[column]
            self._codes[column].append(-1 if text is None else names.setdefault(text, len(names)))
        self._repeat.append(repeat)
        self._success.append(-1 if success is None else int(success))
        self._value.append(float("nan") if value is None else value)

    def table(self) -> ScoreTable:
        """Return the added ratings as a table."""
        columns: dict[str, Any] = {
            name: CodedColumn(np.array(self._codes[name], dtype=np.int32), tuple(self._names[name]))
            for name in NAMED
        }
        return ScoreTable(
            **columns,
            repeat=np.array(self._repeat, dtype=np.int32),
            success=np.array(self._success, dtype=np.int8),
            value=np.array(self._value, dtype=np.float64),
        )


def score_table(rows: Iterable[Mapping[str, Any]]) -> ScoreTable:
    """Return a table from mappings with run, criterion and value; other keys are optional.

    Defaults: the case is the run, no system or label, variant "original", status "scored", repeat
    0, unknown success. Rows without value, label and status are "unscored:missing".
    """
    builder = TableBuilder()
    for row in rows:
        value, label = row.get("value"), row.get("label")
        missing = label is None and (value is None or np.isnan(value))
        texts = {
            "run": row["run"],
            "case": row.get("case", row["run"]),
            "system": row.get("system"),
            "criterion": row["criterion"],
            "variant": row.get("variant", ORIGINAL),
            "status": row.get("status", "unscored:missing" if missing else "scored"),
            "label": label,
            "probabilities": row.get("probabilities"),
        }
        builder.add(texts, repeat=row.get("repeat", 0), success=row.get("success"), value=value)
    return builder.table()
