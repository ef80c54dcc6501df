"""Reference figures that stand in the text of the specifications only, as they are printed.

The number of digits matters: a figure is reproduced when ours rounds to it.
"""

from __future__ import annotations

CRITERIA = (
    "Problem Interpretation",
    "Mathematical Methodology",
    "Calculation Correctness",
    "Explanation Clarity",
    "Code Efficiency",
    "Code Correctness",
)
_POOLED = (  # mean and 1.96 standard errors of successes, of failures; n of each
    ("3.962 0.046 104", "3.964 0.049 56"),
    ("3.865 0.089 104", "3.214 0.294 56"),
    ("3.798 0.129 104", "2.804 0.395 56"),
    ("3.165 0.086 103", "2.804 0.214 56"),
    ("2.484 0.135 91", "1.864 0.303 44"),
    ("3.868 0.103 91", "2.778 0.444 45"),
)
_ALPHA = ("0.21", "0.47", "0.61", "0.22", "0.18", "0.71")
_AUC = ("0.527", "0.764", "0.747", "0.775", "0.769", "0.758")
# judge, set, AUC and sign p of right against wrong answers, None where the text has none
_LLMBAR = (
    ("GPT-4 Rating Natural", "0.8966", "9.82e-23"),
    ("GPT-4 Rating Adversarial", "0.787410", "1.15e-39"),
    ("GPT-4 Rating_Metrics Natural", "0.9033", None),
    ("GPT-4 Rating_Metrics Adversarial", "0.795221", "1.23e-40"),
    ("GPT-4 Rating_Metrics_Reference Adversarial", "0.814398", None),
    ("GPT-4 Rating_NoRules Adversarial", "0.698375", None),
    ("ChatGPT Rating Natural", "0.6331", "1.18e-07"),
    ("ChatGPT Rating Adversarial", "0.432174", "0.999954"),
)
_SUMMEVAL = {
    "experts alpha interval": "0.575580 0.898861 0.737534 0.493491",
    "experts alpha ordinal": "0.574386 0.814564 0.612295 0.447255",
    "experts ICC(C,1)": "0.639853 0.902694 0.747377 0.538041",
    "crowd alpha interval": "0.453010 0.435904 0.443682 0.435148",
    "Spearman gpt-4_rts": "0.447754 0.556500 0.497978 0.427064",
    "Spearman gpt-3.5_rts": "0.443636 0.423255 0.284930 0.447890",
    "Spearman gpt-3.5_mcq": "0.423897 0.342837 0.342751 0.384282",
    "Spearman llama-2-70b": "0.233995 0.357437 0.154802 0.248393",
    "Spearman llama-2-7b": "-0.000937 0.113826 0.042943 0.066538",
    "Kendall tau-b gpt-4": "0.372650 0.521555 0.451556 0.361449",
    "per-document Spearman gpt-4": "0.457443 0.608255 0.531030 0.437786",
    "AUC gpt-4": "0.694351 0.783808 0.897851 0.716732",
}
_OTHER = {
    "B3 SummEval all rows, alpha interval": "0.733368",
    "B3 SummEval all rows, alpha ordinal": "0.713533",
    "B3 JudgeBench o1-mini": "65.7143",
    "B3 JudgeBench haiku": "32.2222",
    "B3 JudgeBench Skywork-27B": "64.2857",
    "B3 JudgeBench internlm-20b": "63.4286",
    "B3 AlpacaEval Null win rate": "76.919792",
    "B3 AlpacaEval Null SE": "0.909010",
    "B3 AlpacaEval verbose win rate": "12.763170",
    "B3 AlpacaEval verbose SE": "1.044247",
    "B3 AlpacaEval plain win rate": "9.177965",
    "B3 AlpacaEval plain SE": "0.890412",
    "B3 AlpacaEval concise win rate": "7.415865",
    "B3 AlpacaEval concise SE": "0.837444",
    "B3 tau airline alpha nominal": "0.400930",
    "B3 tau airline Fleiss": "0.397920",
    "B3 tau airline AUC of length": "0.316656",
    "S13 tau pass^1": "0.42",
    "S13 tau pass^2": "0.273333",
    "S13 tau pass^3": "0.22",
    "S13 tau pass^4": "0.20",
    "S13 tau pass@1": "0.42",
    "S13 tau pass@2": "0.566667",
    "S13 tau pass@3": "0.66",
    "S13 tau pass@4": "0.72",
    "S1 0/10 Wilson high": "0.2775",
    "4.3 Calculation Correctness, p": "0.066",
    "4.3 Explanation Clarity, p": "0.048",
    "4.3 Spearman Mathematical Methodology, Calculation Correctness": "0.81",
    "4.3 Spearman Calculation Correctness, Code Correctness": "0.82",
    "4.3 Spearman Mathematical Methodology, Code Correctness": "0.80",
    "4.3 Spearman, fourth largest": "0.56",
    "4.9 accuracy, between cases": "2.250",
    "4.9 accuracy, within": "0.631",
    "4.9 accuracy, ICC": "0.78",
}


def spec_figures() -> dict[str, str]:
    """Name to figure, as printed."""
    out = {f"spec/{name}": value for name, value in _OTHER.items()}
    for i, name in enumerate(CRITERIA):
        out[f"spec/4.3 {name}, alpha"] = _ALPHA[i]
        out[f"spec/4.3 {name}, AUC"] = _AUC[i]
        for group, text in zip(("success", "failed"), _POOLED[i], strict=True):
            for key, value in zip(("mean", "ci95", "n"), text.split(), strict=True):
                out[f"spec/4.3 {name}, {group}, {key}"] = value
    for name, area, p in _LLMBAR:
        out[f"spec/B3 LLMBar {name}, AUC"] = area
        if p:
            out[f"spec/B3 LLMBar {name}, sign p"] = p
    for name, values in _SUMMEVAL.items():
        for dimension, value in zip(("coh", "con", "flu", "rel"), values.split(), strict=True):
            out[f"spec/B3 SummEval {name}, {dimension}"] = value
    return out
