"""Log-probabilities against transformers reading the same GGUF file, and against llama.cpp."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError, ModelUnavailable
from agenteval.models.embedded.chat import chat_prefix
from agenteval.models.embedded.likelihood import LikelihoodModel

PREFIX = chat_prefix([{"role": "user", "content": "How fast is the train?"}])
TEXT = "It covers 120 km in 1.5 hours, so its speed is 80 km/h.\n\n80 * 1.5 = 120. 🎉 Done"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def model(tiny: Any, cache: Path) -> LikelihoodModel:
    return LikelihoodModel.load(tiny.path, cache_dir=cache)


def by_transformers(reference: Any, prefix: str, text: str, model: LikelihoodModel) -> Any:
    """Log-probabilities of the text's tokens from a full forward pass of transformers."""
    import torch

    before = model._tokenizer.prompt(prefix)
    tokens, _ = model._tokenizer.text(text)
    with torch.inference_mode():
        logits = reference(torch.tensor([before + tokens])).logits[0].double()
    rows = logits[len(before) - 1 : -1].log_softmax(-1)
    return rows.gather(1, torch.tensor(tokens)[:, None])[:, 0].numpy()


@pytest.mark.parametrize(("arch", "pre"), [("llama", "smollm"), ("qwen2", "qwen2")])
def test_equals_transformers_reading_the_same_file(
    make_tiny: Callable[..., Any], cache: Path, arch: str, pre: str
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    made = make_tiny(arch, pre)
    read = AutoModelForCausalLM.from_pretrained(
        made.path.parent, gguf_file=made.path.name, dtype=torch.float32, local_files_only=True
    ).eval()
    ours = LikelihoodModel.load(made.path, cache_dir=cache)
    found = ours.token_logprobs(PREFIX, TEXT)
    np.testing.assert_allclose(found.logprobs, by_transformers(read, PREFIX, TEXT, ours), atol=1e-4)
    np.testing.assert_allclose(
        found.logprobs, by_transformers(made.reference, PREFIX, TEXT, ours), atol=1e-4
    )


def test_sum_equals_the_loss_of_transformers(tiny: Any, model: LikelihoodModel) -> None:
    import torch

    before, (tokens, _) = model._tokenizer.prompt(PREFIX), model._tokenizer.text(TEXT)
    labels = torch.tensor([[-100] * len(before) + tokens])
    with torch.inference_mode():
        loss = tiny.reference(torch.tensor([before + tokens]), labels=labels).loss
    total = model.token_logprobs(PREFIX, TEXT).logprobs.sum()
    assert total == pytest.approx(-float(loss) * len(tokens), abs=1e-3)


def test_long_text_is_scored_in_windows(tiny: Any, model: LikelihoodModel) -> None:
    """Context 512: the first window sees prefix and text, the next keeps the prefix and the half
    window before it; the expected values come from transformers, window by window."""
    import torch

    text = " ".join(f"{n} + {n} = {2 * n}." for n in range(120))
    before, (tokens, _) = model._tokenizer.prompt(PREFIX), model._tokenizer.text(text)
    assert len(tokens) > 1000
    found = model.token_logprobs(PREFIX, text).logprobs
    kept = before[-256:]
    room = 512 - len(kept)

    def reference(context: list[int], targets: list[int]) -> Any:
        with torch.inference_mode():
            logits = tiny.reference(torch.tensor([context + targets])).logits[0].double()
        rows = logits[len(context) - 1 : -1].log_softmax(-1)
        return rows.gather(1, torch.tensor(targets)[:, None])[:, 0].numpy()

    expected = [reference(kept, tokens[:room])]
    at = room
    while at < len(tokens):
        end = min(len(tokens), at + room - room // 2)
        expected.append(reference(kept + tokens[at - room // 2 : at], tokens[at:end]))
        at = end
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-4)


def test_empty_prefix_follows_the_separator_of_documents(tiny: Any, model: LikelihoodModel) -> None:
    found = model.token_logprobs("", TEXT).logprobs
    expected = by_transformers(tiny.reference, "<|endoftext|>", TEXT, model)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_empty_text(model: LikelihoodModel) -> None:
    found = model.token_logprobs(PREFIX, "")
    assert found.logprobs.shape == found.starts.shape == found.ends.shape == (0,)
    assert model.many([]) == []


def test_batched_equals_single(model: LikelihoodModel) -> None:
    others = [chat_prefix([{"role": "user", "content": "x" * n}]) for n in range(3)]
    pairs = [(PREFIX, TEXT[:n]) for n in range(0, len(TEXT), 3)]
    pairs += [(prefix, TEXT[n : n + 30]) for n in range(0, 40, 7) for prefix in others]
    pairs += [("", "short"), (PREFIX, TEXT * 20), (PREFIX, TEXT)]
    batched = model.many(pairs)
    for (prefix, text), found in zip(pairs, batched, strict=True):
        single = model.token_logprobs(prefix, text)
        np.testing.assert_allclose(found.logprobs, single.logprobs, atol=1e-4)
        np.testing.assert_array_equal(found.starts, single.starts)


def test_same_call_gives_the_same_bits(model: LikelihoodModel) -> None:
    pairs = [(PREFIX, TEXT[:n]) for n in (5, 20, 40)]
    for first, second in zip(model.many(pairs), model.many(pairs), strict=True):
        np.testing.assert_array_equal(first.logprobs, second.logprobs)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=40) | st.text(alphabet="🎉é\u0301 \n\t12<|im_end|>", max_size=40))
def test_offsets_cover_any_text(model: LikelihoodModel, text: str) -> None:
    found = model.token_logprobs(PREFIX, text)
    assert np.isfinite(found.logprobs).all()
    assert (found.logprobs <= 0).all()
    assert found.logprobs.dtype == np.float64
    if not text:
        return
    assert found.starts[0] == 0
    assert found.ends[-1] == len(text)
    assert (found.starts < found.ends).all()
    assert (np.diff(found.starts) >= 0).all()
    assert (np.diff(found.ends) >= 0).all()
    assert (found.starts[1:] <= found.ends[:-1]).all()
    # Where spans overlap, they are the parts of one character.
    shared = found.starts[1:] < found.ends[:-1]
    assert (found.ends[:-1][shared] - found.starts[1:][shared] == 1).all()


def test_control_tokens_count_in_the_prefix_only(model: LikelihoodModel) -> None:
    assert len(model._tokenizer.prompt("<|im_end|>")) == 1
    found = model.token_logprobs(PREFIX, "<|im_end|>")
    assert len(found.logprobs) > 1
    assert "".join("<|im_end|>"[a:b] for a, b in zip(found.starts, found.ends, strict=True)) == (
        "<|im_end|>"
    )


def test_lone_surrogate_is_bad_input(model: LikelihoodModel) -> None:
    with pytest.raises(InputError, match="character 2"):
        model.token_logprobs(PREFIX, "ab\ud800")


def test_second_load_reads_the_cache_and_a_damaged_one_is_made_anew(
    make_tiny: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_tiny()
    first = LikelihoodModel.load(made.path, cache_dir=tmp_path).token_logprobs(PREFIX, TEXT)
    (folder,) = (p for p in (tmp_path / "likelihood").iterdir() if p.is_dir())
    stored = folder / "model.safetensors"
    stamp = stored.stat().st_mtime_ns
    LikelihoodModel.load(made.path, cache_dir=tmp_path)
    assert stored.stat().st_mtime_ns == stamp
    for name in ("model.safetensors", "tokenizer.json", "shape.json"):
        (folder / name).write_bytes((folder / name).read_bytes()[:100])
        again = LikelihoodModel.load(made.path, cache_dir=tmp_path).token_logprobs(PREFIX, TEXT)
        np.testing.assert_array_equal(again.logprobs, first.logprobs)
    assert not list((tmp_path / "likelihood").glob(".tmp-*"))


def test_files_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No such file"):
        LikelihoodModel.load(tmp_path / "none.gguf", cache_dir=tmp_path)
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelUnavailable, match="not a GGUF file"):
        LikelihoodModel.load(tmp_path / "text.gguf", cache_dir=tmp_path)
    with pytest.raises(ModelUnavailable, match="directory"):
        LikelihoodModel.load(tmp_path, cache_dir=tmp_path)


@pytest.mark.parametrize("kept", [4, 60, 3000, 200_000])
def test_truncated_file(tiny: Any, tmp_path: Path, kept: int) -> None:
    (tmp_path / "cut.gguf").write_bytes(tiny.path.read_bytes()[:kept])
    with pytest.raises(ModelUnavailable, match=r"cut\.gguf"):
        LikelihoodModel.load(tmp_path / "cut.gguf", cache_dir=tmp_path / "cache")
    assert not [p for p in (tmp_path / "cache" / "likelihood").iterdir() if p.is_dir()]


@pytest.mark.parametrize(
    ("pre", "extra", "message"),
    [
        ("deepseek-coder", {}, "pre-tokenizer"),
        ("smollm", {"llama__rope__scaling__type": "yarn"}, "rotary"),
    ],
)
def test_what_cannot_be_exact_is_refused(
    make_tiny: Callable[..., Any], tmp_path: Path, pre: str, extra: dict[str, str], message: str
) -> None:
    made = make_tiny("llama", pre, **extra)
    with pytest.raises(ModelUnavailable, match=message):
        LikelihoodModel.load(made.path, cache_dir=tmp_path)


def test_unknown_tensor_is_refused(tiny: Any, tmp_path: Path) -> None:
    raw = tiny.path.read_bytes()
    assert raw.count(b"blk.1.ffn_gate.weight") == 1
    changed = tmp_path / "other.gguf"
    changed.write_bytes(raw.replace(b"blk.1.ffn_gate.weight", b"blk.1.ffn_gute.weight"))
    with pytest.raises(ModelUnavailable, match=r"blk\.1\.ffn_gate\.weight"):
        LikelihoodModel.load(changed, cache_dir=tmp_path / "cache")


@pytest.fixture(scope="module")
def real(real_model: Path) -> LikelihoodModel:
    return LikelihoodModel.load(real_model)


@pytest.mark.local
def test_real_weights_agree_with_llama_cpp(real: LikelihoodModel, real_model: Path) -> None:
    """llama.cpp reports the log-probability of each token that it generates. It computes with
    activations rounded to 8 bits, so the values agree only closely, not exactly."""
    pytest.importorskip("xllamacpp")
    from agenteval.models.embedded.generate import LocalServer

    talk = [{"role": "user", "content": "Explain briefly why the sky is blue."}]
    body = {"messages": talk, "max_tokens": 60, "temperature": 0, "logprobs": True, "seed": 1}
    with LocalServer(real_model) as server:
        choice = server.chat(body)["choices"][0]
    told = [token for token in choice["logprobs"]["content"] if token["token"]]
    text = "".join(token["token"] for token in told)
    found = real.token_logprobs(chat_prefix(talk), text)
    spelled = [text[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert spelled == [token["token"] for token in told]
    theirs = np.array([token["logprob"] for token in told])
    assert np.abs(found.logprobs - theirs).mean() < 0.1
    assert abs((found.logprobs - theirs).mean()) < 0.03


@pytest.mark.local
def test_real_weights_prefer_sense_to_shuffled_words(real: LikelihoodModel) -> None:
    sense = "The sum of 17 and 25 is 42, because 10 plus 20 is 30 and 7 plus 5 is 12."
    words = sense.split()
    shuffled = " ".join(words[i] for i in np.random.default_rng(1).permutation(len(words)))
    asked = chat_prefix([{"role": "user", "content": "What is 17 + 25?"}])
    good, bad = real.many([(asked, sense), (asked, shuffled)])
    assert good.logprobs.mean() > bad.logprobs.mean() + 1


@pytest.mark.local
def test_real_weights_damaged_copy_has_another_identity(real_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    shutil.copyfile(real_model, copy)
    with copy.open("r+b") as handle:
        handle.seek(50_000_000)
        handle.write(b"\x00" * 64)
    from agenteval.models import weights

    assert weights.remembered_sha256(copy, tmp_path) != weights.SMOLLM2.sha256
