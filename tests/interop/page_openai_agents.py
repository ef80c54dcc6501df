"""The agent of docs/agents.md; the test server has no streaming Responses API, and no tracing."""

import rinse_and_dry
from agents import set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")
set_tracing_disabled(True)
rinse_and_dry.ask("in_openai_agents")
print("the agent calls its tools")
