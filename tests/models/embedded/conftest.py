"""A tiny language model in a GGUF file, written here: random weights, a vocabulary of its own.

The weights come from `transformers` models with random parameters, and are written in the layout
of llama.cpp's converter (for "llama" the rows of Q and K are reordered by its formula:
reshape(heads, 2, size / 2, columns), swap axes 1 and 2). So the same model exists three times:
in transformers, in llama.cpp, and in the code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TRAINING = [
    "The train covers 120 km in 1.5 hours, so its speed is 80 km/h. We'll check: 80 * 1.5 = 120.",
    "It's the sum of the two numbers; they're 17 and 25, hence the answer is 42.\n\n\tDone  here.",
    "Straße, naïve café, 東京, привет, 🎉 and x² + y² = z².",
]


@dataclass(frozen=True)
class Tiny:
    """The file, the same weights in transformers, and the architecture."""

    path: Path
    reference: Any
    arch: str


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """make_tiny(arch="llama" | "qwen2", pre="smollm", context=512) -> Tiny."""
    for needed in ("torch", "transformers", "gguf", "tokenizers", "safetensors"):
        pytest.importorskip(needed, reason="needs the extra `local`")

    def make(arch: str = "llama", pre: str = "smollm", context: int = 512, **extra: Any) -> Tiny:
        tokens, merges = _vocabulary()
        reference = _reference(arch, len(tokens), context)
        path = tmp_path_factory.mktemp("tiny") / f"tiny-{arch}.gguf"
        _write(path, reference, arch, (tokens, merges, pre), extra)
        return Tiny(path, reference, arch)

    return make


@pytest.fixture(scope="session")
def tiny(make_tiny: Callable[..., Tiny]) -> Tiny:
    return make_tiny()


@pytest.fixture(scope="session")
def real_model() -> Path:
    """The default weights; the test is skipped when the cache does not hold them."""
    from agenteval.models import weights

    found = weights.locate()
    if found is None:
        pytest.skip("weights not in the cache: agenteval models pull")
    return found


def _vocabulary() -> tuple[list[str], list[str]]:
    """Control tokens, the 256 byte characters, and 150 merges learnt from TRAINING."""
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=3 + 256 + 150,
        special_tokens=CONTROL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(merge) for merge in model["merges"]]


def _reference(arch: str, vocabulary: int, context: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
    }
    if arch == "llama":
        model = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=False))
    else:
        model = Qwen2ForCausalLM(Qwen2Config(**sizes, tie_word_embeddings=True))
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if "norm" in name else 0.2 * noise)
    return model.eval()


_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def _write(
    path: Path,
    reference: Any,
    arch: str,
    vocabulary: tuple[list[str], list[str], str],
    extra: dict[str, Any],
) -> None:
    import gguf

    config = reference.config
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(16)
    writer.add_vocab_size(config.vocab_size)
    tokens, merges, pre = vocabulary
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in CONTROL else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for key, value in extra.items():
        writer.add_string(key.replace("__", "."), value)
    for name, tensor in reference.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        writer.add_tensor(*_as_gguf(name, tensor.numpy(), arch))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _as_gguf(name: str, values: Any, arch: str) -> tuple[str, Any]:
    if name in _TOP:
        return _TOP[name], values
    _, _, layer, rest = name.split(".", 3)
    stem, kind = rest.rsplit(".", 1)
    short = _NAMES[stem]
    if arch == "llama" and short in ("attn_q", "attn_k"):
        heads = 4 if short == "attn_q" else 2
        columns = values.shape[1:]
        values = (
            values.reshape(heads, 2, values.shape[0] // heads // 2, *columns)
            .swapaxes(1, 2)
            .reshape(values.shape)
        )
    return f"blk.{layer}.{short}.{kind}", np.ascontiguousarray(values)
