"""Forward pass of a decoder of the Llama family in torch, float32, for scoring only.

Touvron et al. 2023, "LLaMA", section 2.2: pre-normalisation by RMSNorm, SwiGLU, rotary positions;
grouped-query attention as in Ainslie et al. 2023, section 2.2. Rotary positions (Su et al. 2021,
section 3.2.2) in the half-split form: pair i of a head is (i, i + size/2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenteval.models.embedded.convert import Shape

_HEAD_ROWS = 512  # rows of logits at once: 512 x 49152 x 4 bytes = 100 MB
Past = list[tuple[Any, Any]]


class Decoder:
    """Weights of one model and its forward pass. Rows are padded on the right."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        import torch
        from safetensors.torch import load_file

        self.shape = shape
        self._weights: dict[str, Any] = load_file(folder / "model.safetensors")
        self._head = self._weights.get("head", self._weights["embed"])
        half = shape.head_size // 2
        self._rates = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)

    def hidden(self, ids: Any, past: Past | None = None) -> tuple[Any, Past]:
        """Last hidden states (rows, length, width) and the keys and values of every layer.

        `ids` (rows, length) continue `past`, one row that all rows share. Right padding needs no
        mask: a position sees only what stands before it.
        """
        import torch
        from torch.nn import functional

        begin = 0 if past is None else past[0][0].shape[2]
        rotary = self._rotary(begin, ids.shape[1])
        mask = None
        if begin:
            mask = torch.ones(ids.shape[1], begin + ids.shape[1], dtype=torch.bool).tril(begin)
        state = functional.embedding(ids, self._weights["embed"])
        kept: Past = []
        for layer in range(self.shape.layers):
            normed = self._norm(state, f"{layer}.norm1")
            attended, pair = self._attend(layer, normed, rotary, past, mask)
            kept.append(pair)
            state = state + attended
            gate, up = functional.linear(
                self._norm(state, f"{layer}.norm2"), self._weights[f"{layer}.gate_up"]
            ).chunk(2, dim=-1)
            state = state + functional.linear(
                functional.silu(gate) * up, self._weights[f"{layer}.down"]
            )
        return self._norm(state, "norm"), kept

    def logprobs(self, hidden: Any, targets: Any) -> Any:
        """Natural-log probability (n,) of `targets` (n,) after the states `hidden` (n, width)."""
        import torch

        logprobs = []
        for states, wanted in zip(hidden.split(_HEAD_ROWS), targets.split(_HEAD_ROWS), strict=True):
            logits = states @ self._head.T
            chosen = logits.gather(1, wanted[:, None])[:, 0]
            logprobs.append(chosen.double() - logits.logsumexp(dim=1).double())
        return torch.cat(logprobs)

    def _norm(self, state: Any, name: str) -> Any:
        from torch.nn import functional

        weight = self._weights[name]
        return functional.rms_norm(state, weight.shape, weight, self.shape.norm_eps)

    def _rotary(self, begin: int, length: int) -> tuple[Any, Any]:
        """Cosines and sines (length, head size) of the positions begin, begin + 1, ..."""
        import torch

        angles = torch.outer(
            torch.arange(begin, begin + length, dtype=torch.float64), self._rates
        ).repeat(1, 2)
        return angles.cos().float(), angles.sin().float()

    def _attend(
        self, layer: int, state: Any, rotary: tuple[Any, Any], past: Past | None, mask: Any
    ) -> tuple[Any, tuple[Any, Any]]:
        import torch
        from torch.nn import functional

        shape = self.shape
        rows, length = state.shape[:2]
        joined = functional.linear(
            state, self._weights[f"{layer}.qkv"], self._weights.get(f"{layer}.qkv_bias")
        ).view(rows, length, shape.heads + 2 * shape.kv_heads, shape.head_size)
        q, k, v = joined.transpose(1, 2).split([shape.heads, shape.kv_heads, shape.kv_heads], 1)
        q, k = _rotate(q, rotary), _rotate(k, rotary)
        if past is not None:
            before_k, before_v = (part.expand(rows, -1, -1, -1) for part in past[layer])
            k, v = torch.cat([before_k, k], dim=2), torch.cat([before_v, v], dim=2)
        group = shape.heads // shape.kv_heads
        mixed = functional.scaled_dot_product_attention(
            q,
            k.repeat_interleave(group, dim=1),
            v.repeat_interleave(group, dim=1),
            attn_mask=mask,
            is_causal=mask is None,
        )
        mixed = mixed.transpose(1, 2).reshape(rows, length, shape.heads * shape.head_size)
        return functional.linear(mixed, self._weights[f"{layer}.out"]), (k, v)


def _rotate(heads: Any, rotary: tuple[Any, Any]) -> Any:
    """(rows, heads, length, size) turned by the angle of each position."""
    import torch

    cosine, sine = rotary
    first, second = heads.chunk(2, dim=-1)
    return heads * cosine + torch.cat([-second, first], dim=-1) * sine
