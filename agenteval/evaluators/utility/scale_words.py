"""Graded words: the lexicon behind `scale_order`, written by hand, general English.

Three tables. `DEGREES` says how much of something there is, 0 (none) to 1 (all). `QUALITY` places
a word by itself on the line from -1 (worst) to 1 (best). `GOOD` and `BAD` are beginnings of words
that name a quality or a fault; a negating prefix in front of a good one makes it bad. Numbers are
ranks on one line, not measurements: only their order is used.
"""

from __future__ import annotations

NONE = 0.0
BARE = 0.9  # "clear" without any word of degree

DEGREES: dict[str, float] = {
    **dict.fromkeys(("not", "no", "none", "never", "zero", "without", "lacks", "lacking", "lack",
                     "nothing", "cannot", "absent", "neither"), NONE),
    **dict.fromkeys(("hardly", "barely", "scarcely", "rarely", "seldom", "few", "minimal",
                     "minimally", "low", "little", "negligible"), 0.15),
    **dict.fromkeys(("slightly", "slight", "marginally", "marginal", "minor", "small", "isolated",
                     "occasional", "occasionally", "limited", "trivial", "one", "single"), 0.25),
    **dict.fromkeys(("somewhat", "partially", "partly", "partial", "some", "moderately",
                     "moderate", "medium", "sometimes", "average", "half", "intermediate"), 0.5),
    **dict.fromkeys(("fairly", "reasonably", "quite", "rather", "generally", "usually", "often"),
                    0.65),
    **dict.fromkeys(("mostly", "largely", "mainly", "most", "substantially", "substantial",
                     "nearly", "almost", "predominantly", "frequently", "frequent", "many",
                     "several", "major"), 0.8),
    **dict.fromkeys(("very", "highly", "strongly", "high", "completely", "complete", "fully",
                     "full", "all", "every", "always", "entirely", "totally", "total", "throughout",
                     "severe", "severely", "serious", "seriously", "critical", "grossly"), 1.0),
    **dict.fromkeys(("extremely", "exceptionally", "absolutely", "utterly"), 1.05),
}  # fmt: skip

# These say that the whole of something wanted is there: nobody grades how "fully" a fault is met.
WHOLE = frozenset(("completely", "complete", "fully", "full", "entirely", "always", "every", "all",
                   "totally", "throughout"))  # fmt: skip

QUALITY: dict[str, float] = {
    **dict.fromkeys(("perfect", "perfectly", "flawless", "flawlessly"), 1.05),
    **dict.fromkeys(("excellent", "excellently", "outstanding", "exceptional", "superb", "ideal",
                     "optimal", "optimally", "exemplary", "best", "expert", "masterly"), 1.0),
    **dict.fromkeys(("great", "superior", "advanced"), 0.9),
    **dict.fromkeys(("strong", "well", "thorough", "thoroughly", "proficient"), 0.8),
    **dict.fromkeys(("good", "better", "properly", "proper", "solid"), 0.6),
    **dict.fromkeys(("adequate", "adequately", "acceptable", "sufficient", "sufficiently",
                     "satisfactory", "decent", "competent", "ok", "okay"), 0.3),
    **dict.fromkeys(("fair", "neutral", "mixed", "neither", "unsure"), 0.0),
    **dict.fromkeys(("mediocre", "suboptimal", "basic", "borderline", "developing", "questionable"),
                    -0.2),
    **dict.fromkeys(("superficial", "shallow", "sketchy", "novice", "beginner"), -0.5),
    **dict.fromkeys(("weak", "weakly", "deficient", "inferior"), -0.6),
    **dict.fromkeys(("poor", "poorly", "bad", "badly", "worse"), -0.7),
    **dict.fromkeys(("failing", "failed", "fails", "fail"), -0.8),
    **dict.fromkeys(("terrible", "awful", "horrible", "abysmal", "worst", "useless", "unusable"),
                    -1.0),
}  # fmt: skip
GRADE_ALONE = {"moderate": 0.0, "average": 0.0, "medium": 0.0, "partial": 0.0, "minimal": -0.6}

GOOD: tuple[str, ...] = (
    "accept", "accura", "address", "adequa", "adher", "appropriat", "apt", "attentive", "avail",
    "aware", "balanc", "careful", "clear", "clarity", "clean", "coheren", "competen", "complete",
    "compli", "comprehen", "concis", "concrete", "confident", "connect", "consider", "consisten",
    "construct", "convinc", "correct", "creativ", "credib", "deep", "detail", "direct",
    "effectiv", "efficien", "elegan", "empath", "engag", "exact", "exhaustiv", "factual", "fair",
    "faithful", "fast", "feasib", "fitting", "flawless", "fluent", "focus", "follow", "fresh",
    "grounded", "harmless", "helpful", "honest", "immediate", "innovat", "insight", "intelligib",
    "justif", "legib", "logical", "lucid", "meaningful", "natural", "novel", "optim", "orderly",
    "organi", "original", "pass", "plausib", "polite", "precis", "professional", "promising",
    "proper",
    "quality", "quick", "readab", "realis", "reasonab", "relevan", "reliab", "respect", "right",
    "rigorous", "robust", "safe", "satisf", "secure", "sensib", "simple", "solve", "sound",
    "specific", "structur", "success", "suffic", "suitab", "support", "systematic", "thorough",
    "tidy", "transparen", "true", "truthful", "understand", "understood", "useful", "valid",
    "verif", "warm", "yes", "met", "meets", "present", "implement", "explain", "achiev",
)  # fmt: skip

BAD: tuple[str, ...] = (
    "absurd", "ambigu", "bias", "blunder", "bluff", "careless", "chaotic", "confus", "contradict",
    "crash", "cryptic", "danger", "defect", "delay", "disregard", "error", "excessiv", "fabricat",
    "false", "fault", "flaw", "garbled", "gap", "hallucinat", "harmful", "ignor", "inaccura",
    "irrelevan", "jumbled", "lack", "lapse", "leap", "loop", "mislead", "misread", "missing",
    "misses", "missed", "mistake", "nonsens", "obscur", "off", "omission", "omit", "overly",
    "plagiar", "redundan", "repetit", "rude", "sloppy", "slip", "slow", "toxic", "unclear",
    "vague", "verbos", "violat", "wordy", "wrong", "detour", "contrad", "flaws", "conflict",
    "digress", "superfluous", "filler", "unsupported", "too", "rejected",
)  # fmt: skip

# Words that begin like an entry above and mean something else.
EXCEPT = frozenset(("offer", "offers", "offered", "office", "often", "presentation", "presented",
                    "followed", "aptitude", "difference", "input", "inputs", "information",
                    "structure", "details", "completion", "passage", "passages", "passed",
                    "considerable", "considerably", "consideration", "explanation", "directory",
                    "property", "properties"))  # fmt: skip

NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "ab")

# More of these is worse: what a name or the unit behind a number may say.
WORSE_WHEN_MORE = (
    "second", "minute", "hour", "day", "millisecond", "time", "duration", "delay", "latenc",
    "cost", "dollar", "cent", "euro", "usd", "price", "expense", "error", "mistake", "bug",
    "fault", "slip", "violation", "omission", "contradiction", "hallucination", "redundan",
    "repetition", "retr", "failure", "risk", "harm", "bias", "toxicity", "verbosity", "step",
    "detour", "digression", "gap", "flaw",
)  # fmt: skip
# ... unless the name speaks of keeping it away or of dealing with it.
TURNS_IT_ROUND = ("absence", "avoid", "free", "freedom", "handl", "analys", "detect", "check",
                  "prevent", "reduc", "recover", "correction", "manage", "resist")  # fmt: skip

# Kinds of things, not grades: a list of these is nominal whatever else it holds.
CATEGORIES = frozenset((
    "algebra", "geometry", "calculus", "statistics", "combinatorics", "arithmetic", "probability",
    "trigonometry", "topology", "logic", "number theory", "precalculus", "prealgebra", "physics",
    "chemistry", "biology", "history", "python", "java", "javascript", "rust", "sql", "english",
    "german", "french", "spanish", "chinese", "analytical", "numerical", "graphical", "algebraic",
    "geometric", "computational", "theoretical", "formal", "informal", "casual", "email", "essay",
    "report", "table", "code", "text", "prose", "other", "red", "green", "blue", "web", "mobile",
    "desktop", "induction", "contradiction", "brute force", "recursion", "iteration", "question",
    "statement", "command",
))  # fmt: skip

NOT_APPLICABLE = frozenset(("not applicable", "n/a", "na", "n.a", "not-applicable", "inapplicable",
                            "does not apply", "not relevant here", "none applicable"))  # fmt: skip

# Words without weight.
FILLERS = frozenset((
    "a", "an", "the", "of", "in", "to", "and", "or", "is", "are", "was", "at", "any", "there",
    "be", "been", "by", "for", "on", "with", "its", "it", "this", "that", "as",
))  # fmt: skip
