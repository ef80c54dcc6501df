"""Convert published answers and results of benchmarks and tools to records that `fields` reads.

Based on the sources of arena-hard-auto, FastChat (MT-bench), WildBench, GAIA, openai/evals,
lm-evaluation-harness, deepeval and SWE-agent. Files without a system's answers are refused with
advice. Gold answers and judgements go under names that judges do not see. The tables at the end
list the keys that identify each log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.fields import (
    MESSAGES,
    OUTPUT,
    has_field,
    number_of,
    plain_text,
    snake,
    words,
)
from agenteval.readers.strict_json import Item, Notes, read_items

Rows = Iterator[tuple[str | None, Item]]  # values with their numbers in the file


def public_records(rows: Rows, path: Path, notes: Notes) -> Rows:
    """Return the rows of a file, converted to records if the first row is from a public log.

    Raises InputError for a log without a system's answers.
    """
    first = next(rows, None)
    if first is None:
        return iter(())
    names = _names(first[1].value)
    for keys, reason in _WITHOUT_ANSWERS.items():
        if names.issuperset(keys.split(",")) and not names & _ANSWERS:
            raise InputError(reason, first[1].place)
    logs = (read for keys, read in _LOGS.items() if names.issuperset(keys.split(",")))
    read, rows = next(logs, None), chain([first], rows)
    return rows if read is None else _as_written(read(rows, path, notes), path)


def _names(row: Any) -> set[str]:
    keys = row if isinstance(row, dict) else {}
    inner = (f"{k}.{name}" for k, v in keys.items() if isinstance(v, dict) for name in v)
    return {*keys, *map(snake, keys), *inner}


def _as_written(rows: Rows, path: Path) -> Rows:
    """Yield the rows. Raises InputError for an unexpected structure."""
    place = str(path)
    try:
        for number, item in rows:
            place = item.place
            yield number, item
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"from here on, not in the format of its tool ({error})", place) from None


def _each(convert: Callable[[dict[str, Any], str], dict[str, Any]]) -> Callable[..., Rows]:
    def read(rows: Rows, _path: Path, _notes: Notes) -> Rows:
        for number, item in rows:
            value = item.value
            record = convert(value, item.place) if isinstance(value, dict) else value
            yield number, replace(item, value=record)

    return read


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[k] for k in ("answer", "content") if k in value), value)
    return plain_text(value)


def _turn(role: str, value: Any) -> dict[str, Any]:
    return {"role": role, "content": _text(value)}


def _conversation(messages: list[dict[str, Any]]) -> str:
    """Return the input: a single turn, or all turns with their speakers."""
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"{m['role'].upper()}: {m['content']}" for m in messages)


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [row for row in rows or () if isinstance(row, dict)]


# ---- benchmarks of chat models -------------------------------------------------------------------


def _arena_hard(row: dict[str, Any], _place: str) -> dict[str, Any]:
    messages = _dicts(row["messages"]) if isinstance(row["messages"], list) else []
    for i, m in enumerate(messages):
        if isinstance(m.get("content"), dict):
            messages[i] = {**m, "content": _text(m["content"])}
    return {**row, "messages": messages}


def _mt_bench(rows: Rows, path: Path, notes: Notes) -> Rows:
    """Read answers of FastChat and of arena-hard before version 2, with the questions from
    `question.jsonl` in the same folder or the parent."""
    questions = _questions(path)
    if not questions:
        where = "put question.jsonl in the same folder or its parent"
        notes.add(f"answers without their questions: {where}", str(path))
    for number, item in rows:
        row = dict(item.value)
        choices = row["choices"] if isinstance(row["choices"], list) else []
        first = choices[0] if choices and isinstance(choices[0], dict) else {}
        turns = first.get("turns") or []
        if len(choices) > 1:
            notes.add(f"the first of {len(choices)} choices is read", item.place)
        question = questions.get(str(row.get("question_id")), {})
        prompts = question.get("turns") or []
        messages: list[dict[str, Any]] = []
        for i, turn in enumerate(turns):
            messages += [_turn("user", prompts[i])] if i < len(prompts) else []
            messages.append(_turn("assistant", turn))
        row |= {
            "messages": messages,
            "input": _conversation([_turn("user", turn) for turn in prompts]),
            "output": _text(turns[-1]) if turns else None,
            "reference": question.get("reference"),
        }
        yield number, replace(item, value=row)


def _questions(path: Path) -> dict[str, dict[str, Any]]:
    for folder in (path.parent, path.parent.parent):
        if (folder / "question.jsonl").is_file():
            with opened(folder / "question.jsonl") as stream:
                items = read_items(stream, "question.jsonl", Notes(), lines=True)
                rows = [item.value for item in items if isinstance(item.value, dict)]
            return {str(row.get("question_id", row.get("uid"))): row for row in rows}
    return {}


def _wild_bench(row: dict[str, Any], _place: str) -> dict[str, Any]:
    """Read answers (`chat_history`, `output`) or evaluated ones (`model_output`, `model_test`),
    which have the judge's `prompt`."""
    conversation = row.get("chat_history") or row.get("conversation_input") or []
    roles = ("user", "assistant")
    if isinstance(conversation, list) and all(isinstance(turn, str) for turn in conversation):
        turns = [_turn(roles[i % 2], turn) for i, turn in enumerate(conversation)]
    else:
        turns = [_turn(m["role"], m) for m in conversation]
    record = {k: v for k, v in row.items() if k not in _OF_JUDGE and snake(k) not in MESSAGES}
    record["metadata"] = {k: row[k] for k in _OF_JUDGE if k in row}
    history = plain_text(row.get("history"))
    query = plain_text(row.get("last_query") or row.get("user_query"))
    record["input"] = _conversation(turns) if turns else f"{history}{query}".strip()
    record["output"] = row.get("model_output", row.get("output"))
    record["messages"] = turns and [*turns, _turn("assistant", plain_text(record["output"]))]
    return {**record, "case_id": row["session_id"]}


_OF_JUDGE = words("""
    prompt result parsed_result checklist eval_config ref_output error score strengths weaknesses
    price model_input
""")


def _gaia(row: dict[str, Any], place: str) -> dict[str, Any]:
    gold = next((key for key in row if snake(key) == "final_answer"), "")
    record = {("reference" if key == gold else key): value for key, value in row.items()}
    if not has_field(record, "output", "messages"):
        problem = f"a question of GAIA with its gold answer ({gold!r}); what the system answered "
        raise InputError(problem + "is missing: put it under 'answer'", place)
    return record


# ---- logs of tools -------------------------------------------------------------------------------


def _lm_eval(rows: Rows, _path: Path, notes: Notes) -> Rows:
    """Read samples of lm-evaluation-harness; of several filters on a response, the first counts."""
    seen: set[str] = set()
    for number, item in rows:
        row = item.value
        responses = row.get("resps") or row.get("filtered_resps")
        key = json.dumps([row.get("doc_id"), responses], sort_keys=True)
        if key in seen:
            notes.add("samples that differ only in their filter are read once", item.place)
            continue
        seen.add(key)
        answer = _innermost(responses)
        if not isinstance(answer, str):
            problem = "log-likelihoods of lm-eval, which hold no text: use a generate_until task"
            raise InputError(problem, item.place)
        prompt = _innermost(row.get("arguments"), objects=True)
        try:  # messages may be a JSON string
            decoded = json.loads(prompt)
        except (TypeError, ValueError):
            decoded = None
        metrics = row.get("metrics") or ["exact_match"]
        outcome = row.get(metrics[0]) if isinstance(metrics[0], str) else None
        record = {
            **row,
            "input": decoded if isinstance(decoded, list) else prompt,
            "output": answer,
            "success": bool(outcome) if outcome in (0, 1) else None,
            "reference": row.get("target"),
        }
        yield number, replace(item, value=record)


def _innermost(value: Any, *, objects: bool = False) -> Any:
    """Return the first value of nested lists (and objects), at any depth."""
    while value and (isinstance(value, list) or (objects and isinstance(value, dict))):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


def _openai_evals(rows: Rows, path: Path, _notes: Notes) -> Rows:
    """Read the samples of a log of events. Of several samplings, the answer is the last that
    continues the first one; a grader's sampling starts a new conversation."""
    spec: Mapping[str, Any] = {}
    samples: dict[str, list[Item]] = {}
    for _, item in rows:
        if isinstance(item.value.get("spec"), dict):
            spec = item.value["spec"]
        if item.value.get("sample_id") is not None and isinstance(item.value.get("data"), dict):
            samples.setdefault(str(item.value["sample_id"]), []).append(item)
    systems = spec.get("completion_fns") or spec.get("model_name") or "unnamed"
    systems = [systems] if isinstance(systems, str) else systems
    for number, (sample, items) in enumerate(samples.items(), start=1):
        data = {e.value["type"]: e.value["data"] for e in reversed(items)}  # the first of each type
        samplings = [e.value["data"] for e in items if e.value["type"] == "sampling"]
        if not samplings and "error" not in data:
            continue
        start = samplings[0].get("prompt") if samplings else None
        size = len(start) if isinstance(start, list) else 0
        continued = [d for d in samplings if size and d.get("prompt", ())[:size] == start]
        match = data.get("match", {})
        record = {
            "id": sample,
            "system": ", ".join(map(str, systems)),
            "input": start,
            "output": (continued or samplings[:1])[-1].get("sampled") if samplings else None,
            "success": match.get("correct"),
            "reference": match.get("expected"),
            "error": data.get("error"),
            "metadata": {"eval": spec.get("eval_name")},
        }
        yield str(number), replace(items[0], value=record)
    if not samples:
        raise InputError("a log of openai/evals without events of samples", str(path))


def _deepeval(rows: Rows, _path: Path, _notes: Notes) -> Rows:
    for _, item in rows:
        document = item.value.get("testRunData", item.value)
        conversations = document.get("conversationalTestCases")
        cases = [*(document.get("testCases") or ()), *(conversations or ())]
        settings = document.get("hyperparameters") or {}
        system = settings.get("model") if isinstance(settings, dict) else None
        for i, case in enumerate(cases):
            record = {"model": system, **case}
            record["metadata"] = {"metricsData": record.pop("metricsData", None)}
            if "turns" in case:
                record["expected"] = case.get("expectedOutcome")
            yield str(i + 1), Item(record, f"{item.place}:testCases[{i}]", None)


def swe_agent(row: dict[str, Any], _place: str) -> dict[str, Any]:
    """Convert a trajectory of SWE-agent or mini-swe-agent to a record, without demonstrations."""
    info = row["info"] if isinstance(row["info"], dict) else {}
    rows = [m for m in _dicts(row.get("messages") or row.get("history")) if not m.get("is_demo")]
    rows = [m for m in rows if m.get("role") != "exit"]
    begun = next((i for i, m in enumerate(rows) if m.get("role") == "assistant"), len(rows))
    messages = [  # observations before the agent starts are its task
        {**m, "role": "tool"} if m.get("message_type") == "observation" and i > begun else m
        for i, m in enumerate(rows)
    ]
    if not messages:
        steps, pairs = row.get("trajectory"), (("assistant", "response"), ("tool", "observation"))
        messages = [_turn(role, s[k]) for s in _dicts(steps) for role, k in pairs if s.get(k)]
    settings = row.get("replay_config") or info.get("config")
    try:
        settings = json.loads(settings) if isinstance(settings, str) else dict(settings or {})
        model = settings.get("agent", settings).get("model", settings.get("model", {}))
        system = model.get("name") or model.get("model_name")
    except (AttributeError, ValueError):
        system = None
    ended = {"output", "submission", "exit_status"} & info.keys()
    return {
        "messages": messages,
        **({"output": info.get("submission")} if ended else {}),
        "system": system,
        "status": info.get("exit_status"),
        "instance_id": row.get("instance_id"),
        "metadata": {k: v for k, v in info.items() if k != "submission"},
    }


def public_ratings(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the ratings of a judgment of MT-bench, a scored row of WildBench (both from 1 to 10)
    or a file of deepeval; any other row is a single rating."""
    system = row.get("model_test") or row.get("model")
    case = row.get("session_id") or row.get("question_id")
    parsed = row.get("parsed_result")
    score = row.get("score", parsed.get("score") if isinstance(parsed, dict) else None)
    if case is not None and ("model_test" in row or {"judge", "judgment", "score"} <= row.keys()):
        number = number_of(score)
        valid = number is not None and 1 <= number <= 10
        rating = {"run": f"{system}:{case}", "system": system, "case": str(case)}
        rating["criterion"] = f"turn {row['turn']}" if "turn" in row else "score"
        unread = {"status": "unscored:parse"}
        return [rating | ({"value": (number - 1) / 9} if number and valid else unread)]
    document = row.get("testRunData", row)
    if not isinstance(document, dict) or not isinstance(document.get("testCases"), list):
        return [row]
    return [
        {
            "run": str(test.get("name", i)),
            "criterion": metric.get("name"),
            "value": None if metric.get("error") else metric.get("score"),
            "explanation": metric.get("error") or metric.get("reason"),
        }
        for i, test in enumerate(document["testCases"])
        for metric in test.get("metricsData") or ()
    ]


# By the keys of the first row
_ANSWERS = frozenset(OUTPUT) | {"choices", "messages"}
_WITHOUT_ANSWERS = {
    "output_1,output_2": "preferences between two outputs (AlpacaEval): give each system's outputs",
    "question_id,judge,judgment": "judgments of MT-bench, no answers: they go to --scores, "
    "model_answer/ to runs",
    "games,judge": "judgments of arena-hard: give model_answer/ as runs",
    "question_id,turns": "questions without answers (MT-bench): give model_answer/ as runs",
}
_LOGS: dict[str, Callable[[Rows, Path, Notes], Rows]] = {
    "choices,question_id": _mt_bench,
    "messages,uid,model": _each(_arena_hard),
    "session_id,generator": _each(_wild_bench),
    "session_id,model_test": _each(_wild_bench),
    "question,Final answer": _each(_gaia),
    "question,Final Answer": _each(_gaia),
    "question,final_answer,annotator_metadata": _each(_gaia),
    "question,final_answer,level,file_name": _each(_gaia),
    "doc_id,filtered_resps": _lm_eval,
    "doc_id,resps": _lm_eval,
    "spec.run_id": _openai_evals,
    "run_id,event_id,sample_id,type,data": _openai_evals,
    "testCases": _deepeval,
    "testRunData": _deepeval,
    "trajectory,info": _each(swe_agent),
    "messages,info,trajectory_format": _each(swe_agent),
}
