"""Names of attributes of spans, by convention: what tells a span's kind, and what columns hold."""

from __future__ import annotations

from adp.converters.spans.tree import AGENT, EVENT, LLM, TOOL

OPERATIONS = {
    "gen_ai.operation.name": {
        **dict.fromkeys(("chat", "generate_content", "text_completion", "completion"), LLM),
        **dict.fromkeys(("execute_tool",), TOOL),
        **dict.fromkeys(("invoke_agent", "invoke_workflow"), AGENT),
        **dict.fromkeys(("embeddings", "retrieval", "create_agent", "plan", "chain", "rerank",
                         "search_memory", "update_memory", "delete_memory", "create_memory_store",
                         "upsert_memory", "create_memory", "delete_memory_store", "guardrail"),
                        EVENT),
    },
    "openinference.span.kind": {
        "llm": LLM, "tool": TOOL, "agent": AGENT,
        **dict.fromkeys(("chain", "retriever", "reranker", "embedding", "guardrail", "evaluator",
                         "prompt", "unknown", ""), EVENT),
    },
    "traceloop.span.kind": {"tool": TOOL, "agent": AGENT, "workflow": EVENT, "task": EVENT},
    "llm.request.type": {
        "chat": LLM, "completion": LLM, "rerank": EVENT, "embedding": EVENT, "unknown": EVENT},
    "langfuse.observation.type": {
        "generation": LLM, "tool": TOOL, "agent": AGENT,
        **dict.fromkeys(("span", "event", "chain", "retriever", "evaluator", "embedding",
                         "guardrail"), EVENT),
    },
    "langsmith.span.kind": {
        "llm": LLM, "tool": TOOL, "chain": EVENT, "retriever": EVENT, "embedding": EVENT,
        "prompt": EVENT, "parser": EVENT},
    "span.type": {
        "llm_request": LLM, "tool": TOOL, "interaction": EVENT, "tool.execution": EVENT,
        "tool.blocked_on_user": EVENT, "hook": EVENT},
}  # fmt: skip
"""What tells a span's kind, the surest first: attribute -> its word -> the kind."""

VERCEL = {
    "ai.toolCall": TOOL,
    **dict.fromkeys(
        ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"), AGENT
    ),
    **dict.fromkeys(("ai.embed", "ai.embedMany", "ai.embed.doEmbed", "ai.embedMany.doEmbed",
                     "ai.rerank", "ai.rerank.doRerank"), EVENT),
}  # fmt: skip
CONVERSATION = (
    "gen_ai.conversation.id", "langfuse.session.id", "session.id", "langfuse.trace.session_id",
    "mlflow.trace.session", "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id", "ai.telemetry.metadata.sessionId",
    "langsmith.trace.session_id", "copilot_chat.session_id",
)  # fmt: skip
MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages", "pydantic_ai.all_messages",
             "all_messages_events", "ai.prompt")  # fmt: skip

COLUMNS: dict[str, tuple[str, ...]] = {
    "model": ("gen_ai.response.model", "ai.response.model", "llm.response.model_name",
              "llm.model_name", "gen_ai.request.model", "llm.request.model_name", "ai.model.id",
              "mlflow.llm.model", "model"),
    "response_id": ("gen_ai.response.id", "ai.response.id", "llm.response.id"),
    "stop_reason": ("gen_ai.response.finish_reasons", "ai.response.finishReason",
                    "gen_ai.response.finish_reason", "llm.finish_reason",
                    "gen_ai.completion.0.finish_reason", "llm.response.finish_reason",
                    "stop_reason"),
    "reasoning_effort": ("gen_ai.request.reasoning.level", "gen_ai.request.reasoning_effort",
                         "gen_ai.openai.request.reasoning_effort"),
}  # fmt: skip
TOKENS: dict[str, tuple[str, ...]] = {
    "tokens_in": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
                  "llm.token_count.prompt", "llm.usage.prompt_tokens", "ai.usage.inputTokens",
                  "ai.usage.promptTokens"),
    "tokens_out": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
                   "llm.token_count.completion", "llm.usage.completion_tokens",
                   "ai.usage.outputTokens", "ai.usage.completionTokens"),
    "tokens_cached": ("gen_ai.usage.cache_read.input_tokens",
                      "gen_ai.usage.cache_read_input_tokens", "ai.usage.cachedInputTokens",
                      "llm.token_count.prompt_details.cache_read", "gen_ai.usage.cached_tokens",
                      "llm.usage.cache_read_input_tokens", "gen_ai.usage.details.cache_read_tokens",
                      "ai.usage.inputTokenDetails.cacheReadTokens"),
    "tokens_cache_write": ("gen_ai.usage.cache_creation.input_tokens",
                           "gen_ai.usage.cache_write.input_tokens",
                           "gen_ai.usage.cache_creation_input_tokens",
                           "llm.token_count.prompt_details.cache_write",
                           "llm.usage.cache_creation_input_tokens",
                           "gen_ai.usage.details.cache_write_tokens",
                           "ai.usage.inputTokenDetails.cacheWriteTokens"),
    "tokens_reasoning": ("gen_ai.usage.reasoning.output_tokens",
                         "gen_ai.usage.reasoning_tokens", "ai.usage.reasoningTokens",
                         "llm.token_count.completion_details.reasoning",
                         "gen_ai.usage.details.reasoning_tokens",
                         "ai.usage.outputTokenDetails.reasoningTokens"),
}  # fmt: skip
COSTS = ("gen_ai.usage.cost", "operation.cost", "llm.cost.total", "gen_ai.usage.total_cost",
          "gen_ai.cost.total", "gen_ai.usage.cost_usd", "cost_usd")  # fmt: skip
USAGE = ("gen_ai.usage.", "llm.token_count.", "llm.usage.", "ai.usage.", "llm.cost.",
          "gen_ai.cost.")  # fmt: skip
CLAUDE_NAMES = {"claude_code.llm_request": LLM, "claude_code.api_request": LLM,
                "claude_code.tool": TOOL, "claude_code.tool_result": TOOL}  # fmt: skip
"""Spans and log records of Claude Code, by name; the others are events."""
CLAUDE = {"input_tokens": "tokens_in", "output_tokens": "tokens_out",
           "cache_read_tokens": "tokens_cached",
           "cache_creation_tokens": "tokens_cache_write"}  # fmt: skip
USE: dict[str, tuple[str, ...]] = {
    "name": ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name",
             "traceloop.entity.name"),
    "call_id": ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id", "tool_use_id",
                "tool_call_id"),
    "arguments": ("gen_ai.tool.call.arguments", "tool_arguments", "ai.toolCall.args",
                  "input.value", "tool.parameters", "traceloop.entity.input",
                  "langfuse.observation.input", "gen_ai.prompt", "tool_input", "tool_parameters"),
    "result": ("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "output.value",
               "traceloop.entity.output", "langfuse.observation.output", "gen_ai.completion",
               "tool_output", "gen_ai.tool.message"),
}  # fmt: skip
