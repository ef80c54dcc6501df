"""Graded words of general English: the lexicon behind `scale_order`, written by hand.

`DEGREES` says how much of something there is, 0 (none) to 1 (all). `QUALITY` places a word by
itself on the line from -1 (worst) to 1 (best). `_GOOD` and `_BAD` are beginnings of words for a
quality or a fault; a negating prefix in front of a good one makes it bad. Numbers are ranks on one
line, not measurements: only their order is used.
"""

from __future__ import annotations

import re
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NONE = 0.0
_LONG = 5  # letters of a beginning that needs no known ending
BARE = 0.9  # "clear" without any word of degree

DEGREES: dict[str, float] = {
    word: degree
    for degree, text in {
        NONE: "not no non none never zero without lacks lacking lack nothing cannot absent neither "
              "doesn't isn't don't can't",
        0.15: "hardly barely scarcely rarely seldom few fewer minimal minimally low little "
              "negligible lowest sparsely",
        0.25: "slightly slight marginally marginal minor mild small isolated occasional light "
              "occasionally limited trivial one single briefly",
        0.5: "somewhat partially partly partial some moderately moderate medium sometimes average "
             "half intermediate semi",
        0.65: "fairly reasonably quite rather generally usually often",
        0.8: "mostly largely mainly most substantially substantial nearly almost predominantly "
             "frequently frequent many several multiple major majority numerous "
             "near widespread",
        0.95: "always constantly constant pervasive extensive extensively abundant",  # how often
        1.0: "very deeply heavily heavy highly strongly high completely fully full all every "
             "entirely totally total throughout severe severely serious seriously critical "
             "grossly highest maximal blatant blatantly catastrophic wildly grave gravely",
        1.05: "extremely exceptionally absolutely utterly",
    }.items()
    for word in text.split()
}  # fmt: skip
# The whole of something wanted is there: nobody grades how "fully" a fault is met.
WHOLE = _words("completely fully full entirely every all totally throughout")
# What stands alone and says only whether there is any of it.
ALONE = {"yes": 1.0, "present": 1.0, "no": NONE, "absent": NONE, "missing": NONE}
# Degrees that are spoken of faults only.
SEVERE = _words(
    """severe serious major minor mild severely seriously grossly critical critically blatant
    blatantly catastrophic wildly grave gravely"""
)

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
        -0.7: "poor poorly bad badly worse ill",
        -0.8: "failing failed fails fail failure",
        -1.0: "terrible awful horrible abysmal worst useless unusable",
    }.items()
    for word in text.split()
}  # fmt: skip

_GOOD = _words(
    """
    abilit accept accommodat accomplish accura achiev acknowledg adapt adept adequa adher agree
    airtight align allay ample amus appeal apprais appreciat appropriat apt articulat assur
    attain attentive attract authentic authori autonom avail aware balanc beautiful beneficial
    benign brevity brief brilliant calibrat calm candid canonical captivat captur care careful
    caring cautious charm cheer clarif clarity clean clear cohere cohes collab comfort commend
    compassion compell compet compil complete completi compli comprehen concis conclusive
    concrete confiden conform connect conscientious consider consisten construct continuous
    convey convinc cooperat correct corroborat courte cover creativ credib crisp cultured
    curated curious current decisive dedicat deep delegat delight deliver dependab depth
    descriptive deserv detail determin differentiated diligent diplomatic direct discern
    discipline discreet distinguish diverse durab dynamic eager earnest ease easi easy
    economical educat effective efficien effortless elaborat elegan eloquent empath empow
    encourag engag enjoy enlighten enthusias equitab essential ethical evenhanded evidenced
    evocative exact exceed exhaustiv expect explain explicit expressive extensib factual
    faithful familiar farsighted fast feasib fidelity firm fitting flair flawless flexib fluency
    fluent fluid focus follow foolproof forgiving forthcoming fresh friendl fruitful fulfil
    functional generalis generaliz generous gentle genuine graceful gracious grammatical grasp
    gratitude gripping ground harmless harmoni healthy hearten heartfelt helpful hilarious
    honest honor human humble hygien ideal idiomatic illuminat imaginative immediate impactful
    impartial impeccable implement impress inclu independen inform ingenious innovat insight
    inspir instructive intact integrated intellig interest intuitive inventive inviting
    judicious justif keen kind knack knowledgeable lasting legal legib legitim lifelike likab
    lively logic lossless loyal lucid maintain mastered mastery match mature meaningful meet
    memorab methodical meticulous mindful mitigat modern modular motivat nail native natural
    neat nimble nondiscriminatory nonviolent notable nourish novel nuanc nurturing objectiv
    obtain optim orderly organi original painless pass passion patient perceptive perfect
    perform permissible persever persist personab personali persuas pertinent pinpoint pithy
    plausib pleas polish polite portable practical precis present preserv priorit proactiv
    productive professional proficien profitab profound progress promising prompt proper protect
    proven prudent punctual purposeful quality quick rational readab readi ready realis reasonab
    reassur recall recogn reconcil recover refined refresh relatab relevan reliab remarkab
    remember reproduc resilien resist resolv resourceful respect respond responsib responsiv
    retain reusab reward rich richness right rigor rigour robust safe salient sanitiz sanity
    satisf scalab seamless seasoned secur selfless sensib sequential serviceab sharp simple
    simplif sincere skilful skill smart smooth snappy solve sooth sophisticated sound specific
    speedy spontaneous spotless stab stable steadfast steady straightforward strategic
    streamlined strength strict striking structur stylish substantiated subtlety succe succinct
    suffic suitab superb support sustainab sustained swift synthesi systematic tactful tailor
    targeted tasteful tenable thorough thought tidy timely tireless tolerant traceab tractab
    traction transparen true trust truth tuned typed unaided unaltered unassisted unbias
    unbroken understand understood unequivocal unforced unharmed unified uniform uninterrupted
    unique unmatched unmistakable unparalleled unprompted uplift usab useful valid valu valuable
    varied vast verif versatil versed viab vibrant vigilant vivid warm warranted watertight
    welcom wellbeing wholesome willing wise wit witty workab worthwhile
    """
)
_BAD = _words(
    """
    abandon aberrant abhorrent abort abrasive abrupt absurd abus accident accusat adversar
    afraid aggravat aggressiv agitat aimless alarm alienat aloof ambigu amiss anecdotal angry
    annoy antagoni anxious apathetic arbitrary arcane arduous argumentative arrogan artificial
    atroci aversive awkward backward badger baffl bait banal baseless belittl belligerent
    bewilder bias biased blame bland blank bloat bluff blunder blunt blurr boast bogus
    boilerplate bombast bored boring botched bother bottleneck brash breach break brittle broke
    brusque bug buggy bulky bully bungl burden buried callous caprici careless caustic cavalier
    chaotic chatty cheat choppy circular clash clich clickbait clueless clumsy clunky clutter
    coarse coerci cold collapse collision combative complacen complain complicated conceal
    condescen conflict confus contaminat contempt contentious contorted contrad contriv convolut
    copied copying corrosive corrupt costly counterproductive cram crash creepy cringe crippl
    crude cruel cryptic cumbersome cursory curt cynical damag danger dark dated dead deadlock
    debatable debt deceiv decept defam defect defensive deflect deform degenerat degrad delay
    delet delud delusion demean demoraliz denigrat dependen deplor deprecat depress derail
    derivative derog desperate destructi deteriorat detour detriment deviat difficult digress
    dirty disappoint discourag discrepan discriminat disengag disgust disheart disingenuous
    disjoint dismiss disorder disorgani disorient disparag dispute disregard disrespect disrupt
    dissonan distort distract distress distrust disturb divisive dodge dodging dodgy dogmatic
    doubt downtime drab drag draggy drift drop dropp drown dubious dull dumb duplicat
    dysfunction egregious enrag erratic erroneous error escap evad evasi exaggerat excessiv
    exclusion excuse expensive exploit exposed exposes fabricat fail fallac false fanciful
    farfetched fatal fault fear feeble fictional fictitious fiddly filler fishy fixated flagrant
    flaky flaw flicker flimsy flippant flop flounder flout foolish forced forged forget forgot
    formulaic fractured fragile fragment frantic fraud freez frivol froze frustrat fumbl futile
    fuzzy gap garbage garbled generic gibberish gimmick glaring glib glitch gloomy gloss grating
    gratuitous grave greedy grim grumpy guess gullible gush halluc halting handwav haphazard
    harass hard harm harmful harsh hasty hate hateful hazard hazy heartless hedge heedless
    hesitan hid hijack hinder hole hollow horrif hostil hung hurried hurt idle ignor illeg
    illogical illusory immatur impenetrab imperson impolite imposs improvis impul inabilit
    inaccura inaction inappropriate incident inconclusive indifferen inept inert inflame
    inflammatory inflat infringe infuriat inhuman injur insecure insensitive insincere insipid
    insuffic insult interfer interrupt intimidat intrus invad invalidat invasiv invented
    inventing invents irat irrelevan irreproduc irritat isolating jaded jagged jailbr jargon
    jarring jeopard jerky jitter judgmental jumble jumpy junk kludg lack lacklust lag laggard
    laggy lapse late latency lazy leak leap lengthy lethal lethargic lethargy libel lie lies
    limp listless loop lopsided lose loses losing loss lossy lost loud ludicrous lying
    malevolent malform malfunction malicious mangl manipulat maze meander mechanical meddl mess
    messy mindless misalign mislead misled miss missed misses missing mistak mixup monolithic
    monoton moralis moraliz muddl muffled mundane murky myopic nag naive narrow nasty nausea
    needless needs neglect negligen nois noise noisy nonsens nonsequitur nuisance obfuscat
    oblivious obscen obscur obsolete obstinate obstruct obtrusive obtuse off offens omission
    omit onerous opaque oppress ostentatious outage outdated outlandish overfit overhead overly
    overrefus overrun painful panic paralys parrot partisan patchy patroni pedantic perfunctory
    peril perplex phony pii pitfall plagiar plagu plod plodding pointless poison polariz pollut
    pompous ponderous preach predatory prejudic presumptuous pretentious problem profan prolix
    prone propagandis provocative punish pushy puzzling quirky quit quits racis racy rambl
    random rant rash reactive reckless redundan refus regress regrett reject reluctan repeats
    repetit reprimand repuls resent retract revis rewrit riddled ridicul rigid risk risky rival
    robotic rogue rote rough roundabout rubbish rude ruin rush rushed rusty sabotag sarcas scam
    scant scary scatter scold scrambled scripted secretive selfish sexis shady shaky shallow
    shame shoddy shortcoming simplistic skip skipp slack slander slapdash slip slopp slow
    sluggish smear smug snag snark sneak spaghetti spam sparse speculat spill spite spoil spotty
    spurious squander stagnant stale stall static stereotyp stiff stigma stilted stitched
    strained stray stubborn stuck stumbl stumped stunted stupid stutter subjective superfluous
    surprising suspicious swamp swear swore sycoph tamper tangen tangl tantrum tardy tasteless
    tattered tedious tentative thinly threat tilt tired tiresome too tortuous torture toxic
    translationese trite trouble turgid twisted typo ugly unable unansw unaware uncertain
    unclear undermin unfair unintellig unnatural unnecessar unneeded unproven unrelated unsuitab
    unsupported unsure untouched upset useless vacuous vague vandal verbos vex vicious violat
    violen virulent void volatil vulgar vulnerab wait wander warp wast waste weird wild winding
    wobbl wooden woolly wordy worr worthless wrong yell
    """
)
_STEMS = dict.fromkeys(_GOOD, 1) | dict.fromkeys(_BAD, -1)
_ENDINGS = frozenset(("", "d", "ed", "er", "es", "ful", "ily", "ing", "ly", "s", "y"))
NEGATING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "ab")
# Words that begin like one of the above and mean something else.
_EXCEPT = _words(
    """
    considerable considerably consideration deadline details difference differences directions
    directory explanation explanations hardly hardware informal information intense intent
    intention intents interested lately later latest logic logics met mission modulo nonetheless
    offer offered offers overall overview passage passages possible presentation presented
    probable problem problems properties property representation structure supporting underlined
    underlying understandably variable variables visible words
    """
)

# Phrases that say in several words what one word says.
PHRASES = {
    "on topic": "relevant", "off topic": "irrelevant", "up to date": "current",
    "out of date": "stale", "on time": "timely", "ahead of schedule": "very timely",
    "dead end": "failure", "to the point": "concise", "on point": "relevant",
    "just right": "appropriate", "made up": "fabricated", "in depth": "thorough",
    "surface level": "superficial", "on the surface": "superficial", "native like": "native",
    "off base": "wrong", "human like": "natural", "state of the art": "excellent",
    "off track": "irrelevant", "on track": "good", "easy to follow": "clear",
    "hard to follow": "unclear", "spot on": "exact", "well over": "over", "well below": "below",
    "gives up": "abandons", "gave up": "abandons", "full of": "many", "one sided": "biased",
    "even handed": "balanced", "far sighted": "prudent", "hit or miss": "unreliable",
}  # fmt: skip

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
SPENT = frozenset(("taken", "used", "needed", "required"))
MEASURES = COUNTS | _words("rate rates level levels degree score percentage severity")
UNWELCOME = _words(
    """
    time duration latency runtime cost costs price expense expenses effort load usage edits
    consumption margin overhead difficulty complexity delay toxicity verbosity deviation
    dependence dependency friction severity length misuse intrusiveness invasiveness
    confusion
    """
)
DEALING = _words(
    """handling avoidance prevention detection recovery analysis correction resistance management
    reduction mitigation absence freedom resilience tolerance checking assessment control"""
)
# What names of qualities end in, beside the beginnings above: "Safety: low, medium, high".
WELCOME = _words(
    """
    accessibility communication coordination customization delineation diversity expertise fairness
    formatting grammar initiative interactivity knowledge localization logic neutrality notation
    planning presentation privacy reasoning retention safety sensitivity simplicity spelling
    stability structure testability timeliness usability vocabulary
    """
)
# What is good to do about a fault: "acknowledges uncertainty", "does not detect errors".
DEALS = re.compile(
    r"(?:acknowledge|address|admit|avoid|catch|detect|discuss|explain|fixe?|flag|handle|"
    r"identif(?:y|ie)|mitigate|prevent|reduce|resist|resolve|spot|avert)(?:e?s)?|corrects|recogni[sz]es|reports"
)
KINDS = frozenset(("type", "types", "kind", "category"))  # names that ask for no grade
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
WEIGHTLESS = FILLERS | _words(
    "case cases part parts extent way i we does do did has have only uses shows gives makes found "
    "detected identified observed severity"
)


@lru_cache(maxsize=4096)
def sign(token: str) -> int:
    """1 for a quality, -1 for a fault, 0 for a word that says neither.

    The longest known beginning counts; of less than five letters, with a common ending only.
    """
    if token in _EXCEPT:
        return 0
    if token in QUALITY:
        return (QUALITY[token] > 0) - (QUALITY[token] < 0)
    if token in SEVERE:
        return -1
    for length in range(len(token), 2, -1):
        stem = token[:length]
        ending = token[length:].removeprefix(stem[-1])  # dragging
        if stem in _STEMS and (length >= _LONG or ending in _ENDINGS):
            good = _STEMS[stem]
            return 1 if good == -1 and token == stem + "less" else good
    if token.startswith(("over", "under")):
        return -1
    for prefix in NEGATING_PREFIXES:
        if token.startswith(prefix) and (rest := sign(token[len(prefix) :])):
            return -rest
    if token.startswith("mis") or re.fullmatch(r"un\w{3,}(?:ed|able|ible)", token):
        return -1  # misquoted, undocumented
    return 1 if len(token) > _LONG and token.endswith(("able", "ible")) else 0
