"""The agent of docs/agents.md."""

import rinse_and_dry

rinse_and_dry.ask("in_langgraph")
print("the agent calls its tools")
