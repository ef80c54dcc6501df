"""Does the judge grade its own kin? A check of names only: no score is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agenteval.evaluators.utility.probes.result import Finding
from agenteval.records import Run
from agenteval.records.verification import Check

NAME = "self-preference"
# Family: how its models' names begin. Short or common words must be the whole word.
_BEGIN = {
    "GPT": ("gpt", "chatgpt", "davinci", "codex"),
    "Claude": ("claude",),
    "Gemini": ("gemini", "gemma", "palm"),
    "Llama": ("llama", "codellama", "vicuna"),
    "Mistral": ("mistral", "mixtral", "codestral", "ministral", "magistral"),
    "Qwen": ("qwen", "qwq"),
    "DeepSeek": ("deepseek",),
    "Grok": ("grok",),
    "Falcon": ("falcon",),
    "SmolLM": ("smollm",),
    "GLM": ("glm", "chatglm"),
    "Kimi": ("kimi",),
    "Granite": ("granite",),
    "OLMo": ("olmo",),
}
_WHOLE = {"o1": "GPT", "o3": "GPT", "o4": "GPT", "phi": "Phi", "yi": "Yi"}
_WORD = re.compile(r"[a-z]+\d*")
_MODEL_KEYS = ("model", "model_name", "llm", "llm.model_name", "gen_ai.request.model")


def families(name: str) -> frozenset[str]:
    """Families that a model's or system's name tells of; a distilled model may have two."""
    found = set()
    for word in _WORD.findall(name.lower()):
        found |= {family for family, begins in _BEGIN.items() if word.startswith(begins)}
        plain = word if word in _WHOLE else word.rstrip("0123456789")
        found |= {_WHOLE[plain]} if plain in _WHOLE else set()
    return frozenset(found)


def kinship(judges: Iterable[str], runs: Sequence[Run]) -> Finding:
    """A warning (outcome fail) when a judge's name shares a family with a system or its model.

    Looked at are the systems' names and the models named in the runs' metadata and spans. Judges
    tend to favour their own family (Zheng et al., arXiv 2306.05685, section 3.3). Unknown where a
    side names no family that is known here. No test and no interval: it is a check of names.
    """
    names = sorted({name for name in judges if name})
    own = frozenset[str]().union(*(families(name) for name in names))
    graded = sorted({name for run in runs for name in _names(run)})
    known = {name: families(name) for name in graded}
    same = {name.casefold() for name in names}
    shared = sorted(n for n, found in known.items() if found & own or n.casefold() in same)
    seen = frozenset[str]().union(*known.values())
    said = ", ".join(names)
    if shared:
        kin = ", ".join(sorted(seen & own)) or "the same name"
        reason = f"the judge ({said}) and {', '.join(shared[:5])} are kin: {kin}"
        check = Check(name="family", outcome="fail", reason=reason)
    elif not own or not seen:
        side = f"the judge ({said})" if not own else "the systems"
        reason = f"no known family of models in the name of {side}"
        check = Check(name="family", outcome="unknown", reason=reason)
    else:
        reason = f"the judge is {', '.join(sorted(own))}, graded are {', '.join(sorted(seen))}"
        check = Check(name="family", outcome="pass", reason=reason)
    return Finding(NAME, settled=(check,), detail={"judges": [*names], "graded": [*graded[:100]]})


def _names(run: Run) -> set[str]:
    """The system and every model that the run names."""
    found = {run.system}
    for source in (run.metadata, *(span.attributes for span in run.spans)):
        found |= {v for k in _MODEL_KEYS if isinstance(v := source.get(k), str) and v}
    return found
