"""What trials are rated on: the values follow from the verdicts by hand."""

from __future__ import annotations

import pytest

from agenteval.agents import AgentFailure, AgentLog
from agenteval.planning import evaluator as planning
from agenteval.planning.oracle import Verdict
from agenteval.records import Failure, Finding, Findings, Grade, Result
from agenteval.records.trial import Trial
from agenteval.traces import evaluator as traces
from agenteval.workflows import evaluator as workflows
from agenteval.workflows.equality import Judgement, Same
from agenteval.workflows.judges import ResponseVerdict
from agenteval.workflows.results import SessionVerdict, TurnJudged
from agenteval.workflows.scores import TurnVerdict
from agenteval.workflows.session import SessionFailure

TRIAL = Trial(
    evaluator="planning",
    system_key="a" * 64,
    case_key="b" * 64,
    trial=0,
    case_id="one",
    status="done",
    log={},
)


def told(results: tuple[Result, ...]) -> dict[str, object]:
    """By measure its value, else its label, else its status."""
    return {
        r.criterion_id: r.status
        if isinstance(r, Failure) or r.status != "scored"
        else (r.label if r.value is None else r.value)
        for r in results
    }


def test_a_plan() -> None:
    assert told(planning.measured(TRIAL, AgentLog(), Verdict(outcome="pass"))) == {
        "plan": 1.0,
        "outcome": "pass",
    }
    wrong = planning.measured(TRIAL, AgentLog(), Verdict(outcome="order_error"))
    assert told(wrong) == {"plan": 0.0, "outcome": "order_error"}
    lost = planning.measured(TRIAL, AgentFailure(status="error:timeout", message="late"), None)
    assert told(lost) == {"plan": "error:timeout", "outcome": "error:timeout"}


def test_findings_of_a_trace() -> None:
    low = Finding(span="s", category="c", impact="LOW")
    high = low.model_copy(update={"impact": "HIGH"})
    for found, clean, no_high in (((), 1.0, 1.0), ((low,), 0.0, 1.0), ((low, high), 0.0, 0.0)):
        said = told(traces.of_findings(TRIAL, Findings(trace="t", findings=found)))
        assert said == {"clean": clean, "no_high_impact": no_high}
    grades = {"security": Grade(value=4), "overall": Grade(value=9), "plan_opt": Grade()}
    graded = told(traces.of_findings(TRIAL, Findings(trace="t", grades=grades)))
    assert (graded["security"], graded["overall"]) == (0.75, "unscored:off_scale")
    assert "plan_opt" not in graded
    refused = Findings(trace="t", status="unscored:refusal", message="no")
    assert set(told(traces.of_findings(TRIAL, refused)).values()) == {"unscored:refusal"}


def judgement(verdict: Same) -> Judgement:
    return Judgement(tool="t", parameter="p", gold=1, given=1, verdict=verdict, by="exact")


@pytest.mark.parametrize(
    ("fields", "call", "tool", "parameters"),
    [
        ({"call": "right", "name_right": True, "parameters": ("equal", "equal")}, 1.0, 1.0, 1.0),
        ({"call": "wrong", "name_right": True, "parameters": ("equal", "different")}, 0, 1, 0.5),
        ({"call": "wrong", "name_right": True, "parameters": ("equal",)}, 0.0, 1.0, 0.5),
        ({"call": "wrong", "name_right": False, "parameters": ("equal", "equal")}, 0.0, 0.0, 0.0),
        ({"form": "reply"}, 0.0, 0.0, 0.0),
        (
            {"call": "undecided", "name_right": True, "parameters": ("equal", "unjudged")},
            "unscored:unsupported",
            1.0,
            "unscored:unsupported",
        ),
    ],
)
def test_a_turn_where_a_call_is_due(
    fields: dict[str, object], call: object, tool: object, parameters: object
) -> None:
    named = [judgement(v) for v in fields.get("parameters", ())]  # type: ignore[attr-defined]
    turn = TurnVerdict.model_validate(
        {
            "session": "s",
            "turn": 1,
            "form": "call",
            "gold_call": True,
            "gold_parameters": 2,
            **fields,
            "parameters": named,
        }
    )
    said = told(workflows.of_turn(TRIAL, TurnJudged(turn=turn)))
    assert said == {"call": call, "tool": tool, "parameters": parameters}


def test_a_turn_where_a_reply_is_due() -> None:
    turn = TurnVerdict(session="s", turn=1, form="reply", gold_call=False)
    none = dict.fromkeys(("call", "tool", "parameters"), "not_applicable")
    assert told(workflows.of_turn(TRIAL, TurnJudged(turn=turn))) == none
    graded = TurnJudged(turn=turn, grade=ResponseVerdict(score=7))
    assert told(workflows.of_turn(TRIAL, graded)) == {**none, "response": 0.7}
    failed = TurnJudged(turn=turn, grade=ResponseVerdict(status="unscored:parse"))
    assert told(workflows.of_turn(TRIAL, failed))["response"] == "unscored:parse"


def test_a_session() -> None:
    verdict = SessionVerdict(
        success=True,
        decided_by="state",
        progress=0.5,
        right=1,
        gold=2,
        generated=2,
        sequence=0.8,
        conforms=False,
        fitness=0.9,
    )
    assert told(workflows.of_session(TRIAL, verdict)) == {
        "success": 1.0,
        "progress": 0.5,
        "conforms": 0.0,
        "fitness": 0.9,
        "sequence": 0.8,
    }
    open_ = SessionVerdict(
        success=None,
        decided_by=None,
        right=0,
        gold=0,
        generated=0,
        conforms=None,
        failures=("error:timeout",),
    )
    assert told(workflows.of_session(TRIAL, open_)) == {
        "success": "error:timeout",
        "progress": "error:timeout",
        "conforms": "not_applicable",
        "fitness": "not_applicable",
        "sequence": "not_applicable",
    }
    lost = told(workflows.of_failure(TRIAL, SessionFailure(status="error:budget")))
    assert set(lost) == {m.id for m in workflows.SESSION}
    assert set(lost.values()) == {"error:budget"}
