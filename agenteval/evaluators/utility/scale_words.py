"""Graded words of general English: the lexicon behind `scale_order`, written by hand.

`DEGREES` says how much of something there is, 0 (none) to 1 (all). `QUALITY` places a word by
itself on the line from -1 (worst) to 1 (best). `_GOOD` and `_BAD` are beginnings of words for a
quality or a fault; a negating prefix in front of a good one makes it bad. Numbers are ranks on one
line, not measurements: only their order is used.
"""

from __future__ import annotations

from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NONE = 0.0
BARE = 0.9  # "clear" without any word of degree

DEGREES: dict[str, float] = {
    word: degree
    for degree, text in {
        NONE: "not no non none never zero without lacks lacking lack nothing cannot absent neither "
              "doesn't isn't don't can't",
        0.15: "hardly barely scarcely rarely seldom few fewer minimal minimally low little "
              "negligible lowest",
        0.25: "slightly slight marginally marginal minor mild small isolated occasional "
              "occasionally limited trivial one single",
        0.5: "somewhat partially partly partial some moderately moderate medium sometimes average "
             "half intermediate",
        0.65: "fairly reasonably quite rather generally usually often",
        0.8: "mostly largely mainly most substantially substantial nearly almost predominantly "
             "frequently frequent many several major majority numerous",
        0.95: "always constantly",  # how often, not the whole of something
        1.0: "very highly strongly high completely fully full all every entirely "
             "totally total throughout severe severely serious seriously critical grossly highest "
             "maximal",
        1.05: "extremely exceptionally absolutely utterly",
    }.items()
    for word in text.split()
}  # fmt: skip
# The whole of something wanted is there: nobody grades how "fully" a fault is met.
WHOLE = _words("completely fully full entirely every all totally throughout")
# What stands alone and says only whether there is any of it.
ALONE = {"yes": 1.0, "true": 1.0, "present": 1.0, "no": NONE, "false": NONE, "absent": NONE}
# Degrees that are spoken of faults only.
SEVERE = _words("severe serious major minor mild severely seriously grossly")

QUALITY: dict[str, float] = {
    word: value
    for value, text in {
        1.05: "perfect perfectly flawless flawlessly",
        1.0: "excellent excellently outstanding exceptional superb ideal optimal optimally "
             "exemplary best expert masterly",
        0.9: "great superior advanced",
        0.8: "strong well thorough thoroughly proficient",
        0.6: "good better properly proper solid above",
        0.3: "adequate adequately acceptable sufficient sufficiently satisfactory decent competent "
             "ok okay",
        0.0: "fair neutral mixed neither unsure",
        -0.2: "mediocre suboptimal basic borderline developing questionable",
        -0.5: "superficial shallow sketchy novice beginner",
        -0.6: "weak weakly deficient inferior below",
        -0.7: "poor poorly bad badly worse",
        -0.8: "failing failed fails fail failure",
        -1.0: "terrible awful horrible abysmal worst useless unusable",
    }.items()
    for word in text.split()
}  # fmt: skip

_GOOD = tuple(
    _words(
        """accept accura achiev adapt address adequa adher agree align appropriat apt attentive
    authori avail aware balanc calibrat calm careful clarity clean clear coheren cohes
    collab competen complete compli comprehen concis concrete confident connect consider
    consisten construct convinc cooperat correct courte creativ credib deep detail direct
    ease easi easy effectiv efficien elegan empath engag enjoy exact exceed exhaustiv
    explain factual fair faithful fast feasib fitting flawless flexib fluent focus follow
    fresh friendl gentle ground harmless helpful honest idiomatic immediate implement inclu
    innovat insight intelligib interest justif legib logical lucid maintainab meaningful
    meets met natural novel nuanc objectiv optim orderly organi original pass patient
    persuas plausib pleas polite precis preserv proactiv professional promising prompt
    proper quality quick readab realis reasonab recover relevan reliab reproduc resolv
    respect responsiv right rigorous robust safe satisf secure sensib simple smooth solve
    sound specific stab structur succe suffic suitab support systematic tactful thorough
    tidy timely traceab transparen trust truthful understand understood useful valid verif
    vivid warm"""
    )
)
_BAD = tuple(
    _words(
        """abrupt absurd abus aggressiv alarm ambigu annoy arrogan awkward bias bluff blunder
    boring breach breaks broken bug careless chaotic clumsy clunky cluttered collision
    complicated conceal condescend conflict confus contrad contradict convolut copied costly
    crash cryptic cumbersome damag danger dead deceiv deceptiv defect delay destructi detour
    difficult digress discriminat dismiss disregard disrupt distract drift dropped dull
    error evasiv exaggerat excessiv expensive exploit fabricat false fault filler flaw
    fragile gap garbled halluc hard harm hate hazard hostil ignor illeg impossible inaccura
    incident insult interrupt intrus invasiv irrelevan judgmental jumbled lack lapse late
    leak leap lengthy loop lose loss lost malicious manipulat mess mislead misread missed
    misses missing mistake mistransl misuse monoton needs noisy nonsens obscur off offens
    omission omit outdated overly patroni plagiar problematic profan redundan refus regress
    rejected repeats repetit risk robotic rude slip sloppy slow speculativ stale stereotyp
    stilted stuck superfluous tedious threat tired too toxic unclear unnecessar unneeded
    unsupported vague verbos violat violen vulnerab wast wordy wrong"""
    )
)
# Words that begin like one of the above and mean something else.
_EXCEPT = _words(
    """aptitude completion considerable considerably consideration deadline details difference
    directions directory easter explanation hardest hardly hardware harmony information
    input inputs later latest logic metal method methods metric metrics needle offer offered
    offers office official offline offset often overall overview passage passages passed
    passenger presentation presented properties property structure supporting underlined
    underlying"""
)
NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "ab")

TOO_LITTLE = ("under", "insuffic", "incomplet", "inadequa", "missing")
TOO_MUCH = ("over", "too", "excessiv")

# Times in seconds, as units.
SECONDS: dict[str, float] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86_400.0),
}
UNITS = frozenset(SECONDS) | _words(
    """step steps call calls token tokens turn turns message messages attempt attempts iteration
    iterations retry retries request requests query queries word words line lines edit edits
    action actions dollar dollars usd euro euros eur cent cents credits"""
)
COUNTED = _words("point points star stars score out of or more less above below than to "
                    "percent level")  # fmt: skip

# Names: measures that stand before or behind what is measured, and what one wants less of.
COUNTS = frozenset(("number", "count", "counts", "amount", "frequency"))
MEASURES = COUNTS | _words("rate rates level levels degree score percentage severity")
UNWELCOME = _words(
    """time duration latency runtime cost costs price expense expenses effort load usage
    consumption overhead difficulty complexity delay toxicity verbosity deviation dependence
    dependency friction severity length use misuse intrusiveness invasiveness confusion"""
)
DEALING = _words(
    """handling avoidance prevention detection recovery analysis correction resistance management
    reduction mitigation absence freedom resilience tolerance checking assessment control"""
)
PREPOSITIONS = frozenset(("in", "of", "for", "with", "to", "by", "on", "from", "per", "at"))

# Kinds of things, not grades: a list of these is nominal whatever else it holds.
CATEGORIES = frozenset((
    "algebra", "geometry", "calculus", "statistics", "combinatorics", "arithmetic", "probability",
    "trigonometry", "topology", "logic", "number theory", "precalculus", "prealgebra", "physics",
    "chemistry", "biology", "history", "python", "java", "javascript", "rust", "sql", "english",
    "german", "french", "spanish", "chinese", "analytical", "numerical", "graphical", "algebraic",
    "geometric", "computational", "theoretical", "formal", "informal", "casual", "email", "essay",
    "report", "table", "code", "text", "prose", "other", "others", "red", "green", "blue", "web",
    "mobile", "desktop", "induction", "contradiction", "brute force", "recursion", "iteration",
    "question", "statement", "command",
))  # fmt: skip

NOT_APPLICABLE = frozenset(("not applicable", "n/a", "na", "n.a", "not-applicable", "inapplicable",
                            "does not apply", "not relevant here", "none applicable"))  # fmt: skip

# Words without weight.
FILLERS = _words(
    "a an the of in to and or is are was at any there be been by for on with its it this that as"
)
WEIGHTLESS = FILLERS | _words("case cases part parts extent way i we does do did")


@lru_cache(maxsize=4096)
def sign(token: str) -> int:
    """1 for a quality, -1 for a fault, 0 for a word that says neither."""
    if token in _EXCEPT:
        return 0
    if token in QUALITY:
        return (QUALITY[token] > 0) - (QUALITY[token] < 0)
    if token in SEVERE or (token.startswith(("over", "under")) and not token.startswith("underst")):
        return -1
    if token.startswith(_BAD):
        stem = token.removesuffix("less")
        return 1 if stem != token and not token.startswith(("careless",)) else -1
    for prefix in NEGATING_PREFIXES:
        if token.startswith(prefix) and (rest := token[len(prefix) :]).startswith(_GOOD + _BAD):
            return -1 if rest.startswith(_GOOD) else 1
    return 1 if token.startswith(_GOOD) else 0
