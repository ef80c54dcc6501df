"""Windows of well-known models, by the figures on their makers' pages."""

from __future__ import annotations

import pytest

from agenteval.models.windows import context_of


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 128_000),
        ("openai/gpt-4.1", 128_000),  # it takes more, judges find less in longer prompts
        ("o3-mini", 128_000),
        ("claude-sonnet-4-5", 128_000),
        ("models/gemini-2.5-flash", 128_000),
        ("gpt-4o-realtime-preview", None),  # 32,000
        ("gpt-4o-transcribe", None),
        ("gemini-2.5-flash-image", None),
        ("mistral-large-2402", None),  # 32,000; the later ones take more
        ("gpt-4", None),  # 8,192, as of any unknown one
        ("my-gpt-4o-copy", None),
        ("llama-3.1-8b", None),  # whoever serves it sets its window
        ("reader", None),
    ],
)
def test_the_window_of_a_model(model: str, tokens: int | None) -> None:
    assert context_of(model) == tokens
