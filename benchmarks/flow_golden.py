"""The recorded cases of the published workflow scorer, counted as published and strictly.

    python -m benchmarks.flow_golden [FOLDER]

FOLDER (tests/golden/published) holds workflow_turn_cases.json and workflow_session_cases.json: what
the original returned with a judge of one answer. One line per case: the figures in both modes,
whether the published ones are reproduced, and where the modes differ the reason. Ends with 1 when
one is not reproduced.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from agenteval.errors import InputError
from agenteval.evaluators.workflows.equality import Same, ValueQuestion
from agenteval.evaluators.workflows.flowbench_rows import Rows, read_rows
from agenteval.evaluators.workflows.flowbench_score import score_sessions, score_turns
from agenteval.evaluators.workflows.published import count_session, count_turn, figures
from agenteval.evaluators.workflows.rates import Resampling
from agenteval.evaluators.workflows.verdicts import Judges
from agenteval.models.asking import Asked
from agenteval.records import Usage
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

FOLDER = ROOT / "tests/golden/published"
FIGURES = ("turn_call_pre", "turn_call_rec", "turn_params_pre", "turn_params_rec")
HOW = Resampling(resamples=100)
# Why strict counting says something else. Written down from the rules, one line each; a case that
# differs and is not listed, or is listed and does not differ, ends the run with 1.
WHY = {
    "wrong_tool_right_params": "parameters of another tool earn nothing",
    "case_difference_judge_no": "case is normalised before a judge is asked",
    "gt_empty_string_param_missing": "an empty gold value states nothing",
    "action_and_input_on_one_line": "both labels are read on one line",
    "empty_input_object": "0/0 is undefined, not -0.0",
    "gt_action_input_empty_string": "gold that names a tool is a call without parameters",
    "multiline_json": "JSON may stand over several lines",
    "trailing_space_in_action": "names are stripped",
    "no_calls": "0/0 is undefined, not -0.0",
    "unknown_tool_with_fuzzy_string": "no crash: another tool is simply wrong",
    "substring_counts_as_equal": "York is not New York: the judge is asked",
    "int_vs_float": "2 and 2.0 are one number",
    "no_gt_no_pred": "no calls are no calls: 0 of 0",
    "no_gt_one_pred": "no gold calls are 0, not 1 empty one",
    "gt_one_none_pred": "no generated calls are 0, not 1 empty one",
    "duplicate_gt_single_pred": "one call serves one gold call",
    "indented_judge_reply": "no calls are no calls: 0 of 0",
    "judge_yes_progress_3_of_4": "no calls are no calls: 0 of 0",
    "judge_unparsable": "no calls are no calls: 0 of 0",
    "nested_json_differs": "nested JSON is read and compared",
}


class Always:
    """A judge with one answer."""

    def __init__(self, answer: str) -> None:
        self.equal = answer == "yes"

    async def same(self, question: ValueQuestion) -> Asked[tuple[bool, str]]:
        """As the strict mode asks."""
        return Asked((self.equal, "stub"), "", Usage(), repaired=False)

    async def __call__(self, question: ValueQuestion) -> Same:
        """As the published scripts ask."""
        return "equal" if self.equal else "different"


def rows_of(rows: list[dict[str, Any]]) -> Rows:
    """The rows as they are read from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        path.write_text(json.dumps(rows), encoding="utf-8")
        return read_rows([path])


async def turn_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """(case, published, reproduced, strict, why) of the turn cases."""
    lines = []
    prompt = [{"role": "system", "content": data["system_prompt_used"]}]
    for case in data["cases"]:
        judge = Always(case["judge_always_answers"])
        rows = rows_of([
            {"messages": prompt, "predict": turn["predict"],
             "gt_thought": {"Action": turn["gt_action"], "Action Input": turn["gt_action_input"]}}
            for turn in case["turns"]
        ])  # fmt: skip
        found: dict[str, Any] = {}
        try:
            counts = [await count_turn(row, judge) for row in rows.turns]
            ends = figures("turn_call", [call for call, _ in counts])
            ends |= figures("turn_params", [parameters for _, parameters in counts])
            found = {name: round(low or 0.0, 6) for name, (low, _) in ends.items()}
        except InputError as error:
            found = {"exception": f"ValueError: {str(error).partition('here: ')[2]}"}
        table = (await score_turns(rows.turns, Judges(equality=judge), HOW)).data["table"]
        ours = [
            table[kind][share]["known"]["mean"]
            for kind in ("tool", "parameters") for share in ("precision", "recall")
        ]  # fmt: skip
        published = [found.get(name) for name in FIGURES]
        lines.append(line(case["name"], published, found == case["expected"], ours))
    return lines


async def session_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """(case, published, reproduced, strict, why) of the session cases: right, gold, generated."""
    lines = []
    names = ("right_api_num", "all_api_num_gt", "all_api_num_pre")
    for case in data["cases"]:
        judge = Always(case["fuzzy_judge"])
        texts = {name: case[name] for name in ("gt_actions_string", "gen_dialog_str")}
        rows = rows_of([texts]).sessions
        found = await count_session(rows[0], judge)
        published = (found.right, found.gold, found.predicted)
        expected = tuple(case["expected_repaired"][name] for name in names)
        tool = (await score_sessions(rows, Judges(equality=judge), HOW)).data["table"]["tool"]
        ours = (tool["right"], tool["gold"], tool["predicted"])
        lines.append(line(case["name"], published, published == expected, ours))
    return lines


def line(
    name: str, published: Sequence[Any], reproduced: bool, ours: Sequence[float | None]
) -> tuple[str, ...]:
    """The cells of a case; the reason is that of WHY, and says where it does not fit."""
    differs = [shown(p) for p in published[: len(ours)]] != [shown(o) for o in ours]
    why = WHY.get(name, "")
    if differs != bool(why):
        why = "NOT EXPLAINED" if differs else f"DOES NOT DIFFER ({why})"
    cells = " ".join(map(shown, published)), " ".join(map(shown, ours))
    return name, cells[0], "yes" if reproduced else "NO", cells[1], why


def shown(value: float | None) -> str:
    """A figure in a few characters; -0.0 as what it is."""
    if value is None:
        return "n/a"
    return "-0" if str(value) == "-0.0" else f"{float(value):.3g}"


def printed(title: str, columns: str, rows: Sequence[tuple[str, ...]]) -> Row:
    """Print a table; what it says, met when all is reproduced and explained."""
    table = Table(title=title, title_justify="left", caption=f"figures: {columns}",
                  caption_justify="left")  # fmt: skip
    for column in ("case", "reference", "reproduced", "strict", "why it differs"):
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    Console(width=130).print(table)
    good = sum(row[2] == "yes" for row in rows)
    print(f"{good} of {len(rows)} reproduced, {sum(bool(row[4]) for row in rows)} differ\n")
    explained = not any("NOT" in row[4] for row in rows)
    return Row(f"recorded {title.lower()} reproduced, every difference explained",
               f"{good}", f"{len(rows)}", good == len(rows) and explained)  # fmt: skip


def main() -> int:
    """Print both tables; 0 when everything is reproduced and explained."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    names = ("workflow_turn_cases.json", "workflow_session_cases.json")
    data = [json.loads((folder / name).read_text("utf-8")) for name in names]
    first = printed(
        "Turns", "tool P, tool R, parameters P, parameters R", asyncio.run(turn_rows(data[0]))
    )
    second = printed(
        "Sessions", "right, gold, generated calls", asyncio.run(session_rows(data[1]))
    )  # fmt: skip
    return finish("flow_golden", [first, second])


if __name__ == "__main__":
    sys.exit(main())
