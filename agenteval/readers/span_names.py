"""The names of attributes of spans, and their values, by what they say.

OpenInference and OpenTelemetry's conventions for generative AI come first, then those of other
tools (see `vendors`).
"""

from __future__ import annotations

import re

from agenteval.readers.fields import words
from agenteval.readers.vendors import PACKED
from agenteval.records.run import Role, SpanKind

# Values of the attributes in KIND, in lower case.
KINDS: dict[str, SpanKind] = {
    **dict.fromkeys(words("llm chat text_completion generate_content completion"), "llm"),
    **dict.fromkeys(words("chat.completions text.completions chat_model generation model"), "llm"),
    **dict.fromkeys(words("inference inference.framework inference.modelapi"), "llm"),
    **dict.fromkeys(words("ai.generatetext ai.streamtext ai.generateobject"), "llm"),
    **dict.fromkeys(words("ai.streamobject ai.generatetext.dogenerate"), "llm"),
    **dict.fromkeys(words("ai.streamtext.dostream ai.generateobject.dogenerate"), "llm"),
    **dict.fromkeys(words("ai.streamobject.dostream"), "llm"),
    **dict.fromkeys(words("tool retriever execute_tool ai.toolcall retrieval"), "tool"),
    **dict.fromkeys(words("agentic.tool.invocation agentic.mcp.invocation"), "tool"),
    **dict.fromkeys(words("agent invoke_agent create_agent agentic.invocation"), "agent"),
    **dict.fromkeys(words("agentic.turn agentic.request process_thread_run"), "agent"),
    **dict.fromkeys(words("chain invoke_workflow workflow task span event flow prompt"), "chain"),
    **dict.fromkeys(words("parser embedding embeddings reranker memory guardrail"), "chain"),
    **dict.fromkeys(words("evaluator ai.embed ai.embedmany agentic.delegation"), "chain"),
}
EXACT = frozenset({"llm", "tool", "agent", "chain"})  # the kind says all of it

# Names of attributes by what they say; the first that is there counts.
KIND = words("openinference.span.kind gen_ai.operation.name traceloop.span.kind llm.request.type")
PROVIDER = words("gen_ai.system gen_ai.provider.name")
# How OpenTelemetry and Google ADK call the spans of agents and tools.
NAMED: dict[str, SpanKind] = {
    "invoke_agent": "agent",
    "agent_run": "agent",
    "execute_tool": "tool",
}
VENDOR_KIND = words("""
    mlflow.spanType ai.operationId operation.name langfuse.observation.type langsmith.span.kind
    span.type agentops.span.kind genkit:metadata:subtype
""")
MODEL = words("""
    llm.model_name gen_ai.response.model gen_ai.request.model llm.request.model ai.response.model
    ai.model.id mlflow.llm.model langfuse.observation.model.name
""")
INPUT = words("""
    input.value gen_ai.tool.call.arguments traceloop.entity.input gcp.vertex.agent.tool_call_args
    tool_arguments ai.toolCall.args mlflow.spanInputs langfuse.observation.input genkit:input
    data.input
""")
OUTPUT = words("""
    output.value gen_ai.tool.call.result traceloop.entity.output gcp.vertex.agent.tool_response
    tool_response ai.toolCall.result mlflow.spanOutputs langfuse.observation.output genkit:output
    data.output final_result
""")
TOOL = words("""
    tool.name gen_ai.tool.name tool_call.function.name ai.toolCall.name
""")
TOOL_STATUS = ("gen_ai.tool.status", "tool.status")
NO_TEXT = ("N/A", "{}", "<not serializable>")  # how ADK writes that there is none
PARAMETERS = "llm.invocation_parameters"
LIMIT = words("""
    gen_ai.request.max_tokens llm.request.max_tokens ai.settings.maxOutputTokens
    ai.settings.maxTokens
""")
LIMIT_NAMES = words("""
    max_tokens max_completion_tokens max_output_tokens maxTokens maxOutputTokens num_predict
    max_new_tokens
""")
FINISH = words("""
    llm.finish_reason gen_ai.response.finish_reasons gen_ai.response.finish_reason
    ai.response.finishReason ai.finishReason
""")
FINISH_KEYS = ("finish_reason", "stop_reason", "finishReason")
SENT = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
ANSWERED = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
INSTRUCTIONS = "gen_ai.system_instructions"
TOOLS = ("llm.tools", "gen_ai.tool.definitions")
TALK = (*SENT, *ANSWERED, INSTRUCTIONS, *TOOLS)
STRUCTURED = (*INPUT, *OUTPUT, *PACKED)  # texts, or values of any depth
TREE = re.compile(rf"({'|'.join(map(re.escape, (*TALK, *STRUCTURED)))})(?:\.|$)")
MESSAGE_KEYS = frozenset(words("role content contents parts message tool_calls function_call"))
# Roles of smolagents, in addition to those of message lists.
MORE_ROLES: dict[str, Role] = {"tool-response": "tool", "tool-call": "assistant"}
