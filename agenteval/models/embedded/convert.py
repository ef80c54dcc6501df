"""From a GGUF file to plain tensors: done once, kept in the cache, keyed by the file's SHA-256.

The folder `likelihood/<first 16 digits of the hash>-<layout>/` then holds `shape.json`,
`tokenizer.json` and `model.safetensors` (float32, 4 bytes per parameter: 538 MB for SmolLM2).
Reading them takes about a second; decoding the GGUF again would take six.

`transformers` reads GGUF files as well, with the same token ids and log-probabilities within 2e-5,
but takes 19 s and 1.2 GB at every start, does not save what it has read, and passes over scaled
rotary positions and pre-tokenizers that it does not know without a word.

Names and meaning of tensors and fields: ggml-org/ggml, docs/gguf.md. For the architecture "llama"
llama.cpp's converter reorders the rows of Q and K so that a rotary pair lies side by side; here
they are put back into the half-split order (`_half_split`). "qwen2" is stored half-split already.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import ModelUnavailable

_LAYOUT = 1  # raise it when what is stored changes
_FILES = ("shape.json", "tokenizer.json", "model.safetensors")
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder of the Llama family. `empty` is the token that stands for "no prefix"."""

    vocabulary: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    norm_eps: float
    rope_base: float
    qkv_bias: bool
    empty: int


def require_gguf(path: Path) -> None:
    """Raises ModelUnavailable, one line, unless `path` is a readable file that starts as GGUF."""
    try:
        with path.open("rb") as handle:
            magic = handle.read(4)
    except OSError as error:
        raise ModelUnavailable(f"cannot read the model {path}: {error.strerror}") from error
    if magic != b"GGUF":
        raise ModelUnavailable(f"{path} is not a GGUF file (it starts with {magic!r})")


def converted(gguf: Path, digest: str, root: Path) -> Path:
    """The folder with the converted model; made when missing (about 10 s for SmolLM2).

    Two processes may ask at once: one waits. Raises ModelUnavailable for files that the
    likelihood runtime cannot represent exactly, and when the disk is full.
    """
    from filelock import FileLock

    target = root / f"{digest[:16]}-{_LAYOUT}"
    if is_complete(target):
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock"):
            for stale in root.glob(".tmp-*"):
                shutil.rmtree(stale)
            if not is_complete(target):
                _convert(gguf, target)
    except OSError as error:
        raise ModelUnavailable(f"cannot keep the converted model in {root}: {error}") from error
    return target


def is_complete(folder: Path) -> bool:
    """True when all files of a conversion are there (they appear together, by one rename)."""
    return all((folder / name).is_file() for name in _FILES)


def read_shape(folder: Path) -> Shape:
    """The sizes stored by a conversion."""
    return Shape(**json.loads((folder / "shape.json").read_text("utf-8")))


def _convert(gguf: Path, target: Path) -> None:
    fields, tensors = _read(gguf)
    from safetensors.numpy import save_file

    from agenteval.models.embedded import tokenizer

    shape = shape_of(fields, tensors)
    rebuilt = tokenizer.build(fields)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tmp-") as name:
        made = Path(name) / "made"
        made.mkdir()
        save_file(arrange(tensors, shape, str(fields["general.architecture"])), made / _FILES[2])
        rebuilt.save(str(made / _FILES[1]), pretty=False)
        (made / _FILES[0]).write_text(json.dumps(asdict(shape)), "utf-8")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(made, target)


def _read(gguf: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """All fields, and all tensors as float32 (rows first, as in torch)."""
    try:
        import gguf as library
    except ImportError as error:
        raise ModelUnavailable("the package gguf is missing: install agenteval[local]") from error
    try:
        reader = library.GGUFReader(gguf)
        fields = {name: field.contents() for name, field in reader.fields.items()}
        tensors = {
            str(tensor.name): np.ascontiguousarray(
                library.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32
            )
            for tensor in reader.tensors
        }
    except (ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise ModelUnavailable(f"cannot decode the GGUF file {gguf}: {error}") from error
    return fields, tensors


def shape_of(fields: Mapping[str, Any], tensors: Mapping[str, Array]) -> Shape:
    """Sizes from the fields of a GGUF file. Raises ModelUnavailable for what is not supported."""
    arch = str(fields.get("general.architecture"))
    if arch not in ("llama", "qwen2"):
        raise ModelUnavailable(
            f"likelihood supports the architectures llama and qwen2, this file is {arch}"
        )
    scaled = [name for name in fields if name.startswith(f"{arch}.rope.scaling.")]
    experts = int(fields.get(f"{arch}.expert_count", 0))
    if scaled or experts or "rope_freqs.weight" in tensors:
        what = "a mixture of experts" if experts else "scaled rotary positions"
        raise ModelUnavailable(f"likelihood does not support {what} (architecture {arch})")
    try:
        width = int(fields[f"{arch}.embedding_length"])
        heads = int(fields[f"{arch}.attention.head_count"])
        return Shape(
            vocabulary=tensors["token_embd.weight"].shape[0],
            layers=int(fields[f"{arch}.block_count"]),
            width=width,
            heads=heads,
            kv_heads=int(fields.get(f"{arch}.attention.head_count_kv", heads)),
            head_size=int(fields.get(f"{arch}.attention.key_length", width // heads)),
            context=int(fields[f"{arch}.context_length"]),
            norm_eps=float(fields[f"{arch}.attention.layer_norm_rms_epsilon"]),
            rope_base=float(fields.get(f"{arch}.rope.freq_base", 10000.0)),
            qkv_bias="blk.0.attn_q.bias" in tensors,
            empty=_empty_token(fields),
        )
    except KeyError as error:
        raise ModelUnavailable(f"this GGUF file lacks {error}") from error


def _empty_token(fields: Mapping[str, Any]) -> int:
    """What a text without prefix follows: the model's own begin token where it uses one, else
    the separator of documents, else the end token."""
    if fields.get("tokenizer.ggml.add_bos_token") and "tokenizer.ggml.bos_token_id" in fields:
        return int(fields["tokenizer.ggml.bos_token_id"])
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    if "<|endoftext|>" in tokens:
        return tokens.index("<|endoftext|>")
    return int(fields["tokenizer.ggml.eos_token_id"])


def arrange(tensors: Mapping[str, Array], shape: Shape, arch: str) -> dict[str, Array]:
    """The tensors under the names that `decoder.Decoder` reads, Q/K/V and gate/up joined.

    Raises ModelUnavailable when a tensor is missing or left over (an unknown variant).
    """
    left = dict(tensors)
    try:
        made = {"embed": left.pop("token_embd.weight"), "norm": left.pop("output_norm.weight")}
        if "output.weight" in left:
            made["head"] = left.pop("output.weight")
        for layer in range(shape.layers):
            made |= _arrange_layer(left, layer, shape, arch)
    except KeyError as error:
        raise ModelUnavailable(f"this GGUF file lacks the tensor {error}") from error
    if left:
        raise ModelUnavailable(
            f"this GGUF file has tensors that likelihood does not know, such as {sorted(left)[0]}"
        )
    return made


def _arrange_layer(left: dict[str, Array], layer: int, shape: Shape, arch: str) -> dict[str, Array]:
    def take(name: str) -> Array:
        return left.pop(f"blk.{layer}.{name}")

    def joined(kind: str) -> Array:
        q, k = take(f"attn_q.{kind}"), take(f"attn_k.{kind}")
        if arch == "llama":
            q, k = _half_split(q, shape.heads), _half_split(k, shape.kv_heads)
        return np.concatenate([q, k, take(f"attn_v.{kind}")])

    made = {
        f"{layer}.qkv": joined("weight"),
        f"{layer}.out": take("attn_output.weight"),
        f"{layer}.gate_up": np.concatenate([take("ffn_gate.weight"), take("ffn_up.weight")]),
        f"{layer}.down": take("ffn_down.weight"),
        f"{layer}.norm1": take("attn_norm.weight"),
        f"{layer}.norm2": take("ffn_norm.weight"),
    }
    if shape.qkv_bias:
        made[f"{layer}.qkv_bias"] = joined("bias")
    return made


def _half_split(rows: Array, heads: int) -> Array:
    """Rows of each head from the order 0, h, 1, h+1, ... to 0, 1, 2, ... (h is half a head)."""
    size = rows.shape[0] // heads
    paired = rows.reshape(heads, size // 2, 2, *rows.shape[1:])
    return np.ascontiguousarray(paired.swapaxes(1, 2).reshape(rows.shape))
