"""The table of reference figures: nothing differs, nothing is skipped that has its inputs here."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.golden.files import published
from tests.stats.reference.counts import (
    comparisons,
    corrections,
    counts_in_the_text,
    proportions,
)
from tests.stats.reference.spec import spec_figures
from tests.stats.reference.table import FOLDER, INPUTS, Row, agrees, flatten, table

reference = pytest.mark.skipif(
    not (FOLDER / "stats/reference.json").exists(), reason="reference data not present"
)
# no raw data: these sets are not in the folder
ELSEWHERE = ("sequential_stopping", "alt_test_summeval", "spec/B3", "spec/4.9")
# not in the package: ICC other than (1,1), Fleiss' kappa, Wilcoxon's signed rank test
LEFT_OUT = ("ICC(A,", "ICC(C,", "ICC(1,k)", "fleiss", "wilcoxon")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return table()


@reference
def test_every_figure_with_inputs_is_reproduced(rows: list[Row]) -> None:
    assert [row for row in rows if row.status == "DIFFERS"] == []
    left = [row.name for row in rows if row.status == "no inputs here"]
    assert [
        name for name in left if not any(word in name for word in (*ELSEWHERE, *LEFT_OUT))
    ] == []


@reference
def test_most_are_made_by_the_package(rows: list[Row]) -> None:
    made = Counter(row.how for row in rows if row.status == "ok")
    assert made["numpy"] + made["scikit-learn"] < 0.1 * sum(made.values())
    for function in (
        "krippendorff_alpha",
        "icc",
        "cohen_kappa",
        "gwet_ac1",
        "mean_interval",
        "proportion_interval",
        "discrimination",
        "mann_whitney asymptotic",
        "sign_test",
        "sign_flip_test",
        "adjust",
        "alt_test",
        "corrected_rate",
        "cases_for_difference",
        "variance_components",
        "pass_rate",
        "spearman",
    ):
        assert made[function] > 0, function


def test_figures_whose_inputs_stand_beside_them_need_no_other_data() -> None:
    statistics = published("statistics")
    known = {name: (value, text) for name, value, text in flatten(statistics, "stats")}
    known |= {name: (float(text), text) for name, text in spec_figures().items()}
    made = [
        *corrections(statistics),
        *comparisons(statistics),
        *proportions(statistics),
        *counts_in_the_text(),
    ]
    left = {name for name in known if name.startswith("stats/")} - {name for name, _, _ in made}
    assert [name for name in left if not any(word in name for word in (*INPUTS, "/normal/"))] == []
    for name, ours, _ in made:
        assert ours is not None, name
        assert agrees(ours, *known[name], name), name
