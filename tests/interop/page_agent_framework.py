"""The recipe of docs/recipes.md as an evaluator, and the agent of docs/agents.md."""

import asyncio

import rinse_and_dry
import three_answers as three
from agent_framework import EvalItem, Evaluator, Message

three.write()
from utility_agent_framework import Utility  # noqa: E402

assert isinstance(Utility(), Evaluator)
items = [
    EvalItem(
        [Message("user", [three.QUESTION]), Message("assistant", [said])],
        expected_output=three.EXPECTED,
    )
    for said in three.SAID
]
done = asyncio.run(Utility().evaluate(items))
said = [{score.name: score.score for score in item.scores} for item in done.items]
assert said == three.SCORES, said
assert [item.status for item in done.items] == ["pass", "fail", "error"]
assert three.FAILURE in done.items[2].error_message
assert (done.passed, done.failed) == (1, 1)
rinse_and_dry.ask("in_agent_framework")
print("a failure is an error, neither passed nor failed; the agent calls its tools")
