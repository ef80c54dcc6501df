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
from typing import Any

from rich.console import Console
from rich.table import Table

from agenteval.evaluators.workflows import published as reference
from agenteval.evaluators.workflows.equality import Equality, Question
from agenteval.evaluators.workflows.flowbench_rows import toolbox
from agenteval.evaluators.workflows.published import ERROR, ReferenceTurn
from agenteval.evaluators.workflows.published import Asked as ReferenceQuestion
from agenteval.evaluators.workflows.rates import Rate, Resampling
from agenteval.evaluators.workflows.reply_text import read_actions, read_object, read_reply
from agenteval.evaluators.workflows.scenario import Action
from agenteval.evaluators.workflows.session_score import score_session, session_table
from agenteval.evaluators.workflows.turn_score import (
    GoldTurn,
    TurnFailure,
    TurnVerdict,
    score_turn,
    turn_table,
)
from agenteval.models.asking import Asked
from agenteval.records import Usage
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish
from tests.support.published_goals import read_goals

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
        self.answer = answer
        self.asked = 0

    async def same(self, question: Question) -> Asked[tuple[bool, str]]:
        """As the strict mode asks."""
        self.asked += 1
        return Asked((self.answer == "yes", "stub"), self.answer, Usage(), repaired=False)

    async def text(self, asked: ReferenceQuestion) -> str:
        """As the published scripts ask."""
        return self.answer


async def turn_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """(case, published, reproduced, strict, why) of the turn cases."""
    prompt, rows = data["system_prompt_used"], []
    for case in data["cases"]:
        judge = Always(case["judge_always_answers"])
        given = [
            ReferenceTurn(t["gt_action"], t["gt_action_input"], t["predict"], prompt)
            for t in case["turns"]
        ]
        try:
            found: dict[str, Any] = (await reference.score_turns(given, judge.text)).figures
        except ValueError as error:
            found = {"exception": f"ValueError: {error}"}
        same = {k: round(v, 6) if isinstance(v, float) else v for k, v in found.items()}
        ours = await strict_turns(given, judge)
        published = tuple(found.get(name) for name in FIGURES)
        rows.append(line(case["name"], published, same == case["expected"], ours))
    return rows


async def strict_turns(given: Sequence[ReferenceTurn], judge: Always) -> tuple[float | None, ...]:
    """Tool precision and recall, parameter precision and recall, in strict mode."""
    equality = Equality(toolbox(given[0].prompt), judge)
    verdicts: list[TurnVerdict | TurnFailure] = []
    for i, turn in enumerate(given):
        if ERROR in turn.predict:
            failure = TurnFailure(session="case", turn=i, status="error:infrastructure")
            verdicts.append(failure)
            continue
        action = None
        if turn.action:
            action = Action(tool=turn.action, arguments=read_object(turn.action_input or "") or {})
        gold = GoldTurn(session="case", turn=i, action=action)
        verdicts.append(await score_turn(gold, read_reply(turn.predict), equality))
    table = turn_table(verdicts, how=HOW)
    parts = (table.tool.precision, table.tool.recall, table.parameters.precision,
             table.parameters.recall)  # fmt: skip
    return tuple(known(part) for part in parts)


async def session_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """(case, published, reproduced, strict, why) of the session cases: right, gold, generated, and
    as published success and progress."""
    rows = []
    for case in data["cases"]:
        judge = Always(case["fuzzy_judge"])
        texts = case["gt_actions_string"], case["gen_dialog_str"]
        goals = read_goals(case["judge_response"])
        reproduced = True
        for released in (False, True):
            found = await reference.score_session(*texts, judge.text, published=released)
            expected = case["expected_as_published" if released else "expected_repaired"]
            reproduced &= expected == {
                "success_gpt": goals.success, "progress_gpt": goals.progress,
                "right_api_num": found.right, "all_api_num_gt": found.gold,
                "all_api_num_pre": found.generated,
            }  # fmt: skip
        repaired = await reference.score_session(*texts, judge.text)
        published = (repaired.right, repaired.gold, repaired.generated, int(goals.success),
                     goals.progress)  # fmt: skip
        ours = await strict_session(*texts, Equality(judge=judge))
        rows.append(line(case["name"], published, reproduced, ours))
    return rows


async def strict_session(
    gold_text: str, dialogue: str, equality: Equality
) -> tuple[float | None, ...]:
    """Right, gold, generated, in strict mode, which has a judge of its own for the goals."""
    gold = [
        Action(tool=call.tool, arguments=call.arguments)
        for call in read_actions(gold_text)
        if isinstance(call.arguments, dict)
    ]
    counts = await score_session("case", gold, read_actions(dialogue), equality)
    tool = session_table([counts], ["case"], HOW).tool
    return tool.right, tool.gold, tool.predicted


def known(rate: Rate) -> float | None:
    """The figure over what is decided."""
    return rate.known.mean


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
        "Sessions", "right, gold, generated calls; reference: success, progress",
        asyncio.run(session_rows(data[1])),
    )  # fmt: skip
    return finish("flow_golden", [first, second])


if __name__ == "__main__":
    sys.exit(main())
