"""Which way do generated scales run? Every noun in every form; the truth is known by construction.

    python -m benchmarks.scales [--all]

A form is a scale with a gap, written worst first: "no {} | some {} | full {}". Each is filled with
every word of its class and read forwards and backwards; a score is the rank of a level, so an
inverted reading turns every result round. Classes: qualities ("clarity"), things that are wanted
("key points covered"), faults ("errors"), dealings with faults ("error handling", "errors caught"),
measures ("error rate"), work that is still needed ("corrections needed"), adjectives, and scales
that have no direction at all. The words were written down without looking at the lexicon.

Targets: no form inverted, at most 5% unclear; a scale without a direction is never given one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from agenteval.utility.scale_order import order_of
from benchmarks.outcome import Row, finish

UNCLEAR = 0.05  # share of scales that may stay unclear


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


QUALITIES = _split("""
    clarity, accuracy, completeness, depth, relevance, coherence, consistency, conciseness,
    correctness, precision, detail, justification, explanation, reasoning, understanding,
    evidence, structure, organization, creativity, originality, efficiency, effectiveness,
    reliability, robustness, transparency, safety, empathy, politeness, fluency, readability,
    adaptability, flexibility, thoroughness, rigor, insight, progress, verification, validation,
    planning, documentation, awareness, compliance, adherence, alignment, collaboration,
    communication, helpfulness, usefulness, credibility, factual accuracy, logical flow,
    attention to detail, use of evidence, clarity of explanation, understanding of the task,
    source quality, code quality, final answer quality, mathematical rigor, step-by-step
    explanation, confidence, legibility, conformity, coverage, focus, persistence,
    responsiveness, sensitivity, simplicity, specificity, stability, timeliness, traceability,
    usability, versatility, vocabulary, privacy, fairness, neutrality, objectivity,
    impartiality, initiative, expertise, proficiency, mastery, knowledge, recall, retention,
    fidelity, diversity, variety, innovation, imagination, nuance, honesty, integrity,
    accountability, maintainability, scalability, testability, modularity, interpretability,
    generalizability, grammar, notation, formatting, presentation, spelling, engagement,
    motivation, encouragement, guidance, support, feedback quality, cooperation, coordination,
    professionalism, courtesy, respect, warmth, concentration, comprehension, synthesis,
    elaboration, substantiation, corroboration, calibration, foresight, diligence, care,
    problem-solving ability, decision-making skill, domain expertise, success, performance
""")
QUALITY_FORMS = """
    no {} | some {} | full {}
    No {} | Limited {} | Moderate {} | Extensive {}
    lacks {} | adequate {} | excellent {}
    poor {} | fair {} | good {} | excellent {}
    low {} | medium {} | high {}
    lack of {} | some {} | strong {}
    complete lack of {} | some lack of {} | no lack of {}
    absence of {} | presence of {}
    0% {} | 50% {} | 100% {}
    1 - No {} | 2 - Some {} | 3 - Complete {}
    {} is absent | {} is partial | {} is complete
    insufficient {} | sufficient {}
    weak {} | strong {}
    minimal {} | comprehensive {}
    Very poor {} | Very good {}
    Very low level of {} | Very high level of {}
    shows no {} | shows little {} | shows great {}
    fails to show {} | shows {}
    inadequate {} | adequate {} | outstanding {}
    without {} | with some {} | with full {}
    low {} rate | high {} rate
    absent or misleading {} | partial {} | complete {}
    below average {} | average {} | above average {}
"""
THINGS = _split("""
    steps, key points, requirements, sub-tasks, objects, constraints, test cases, sources,
    claims, instructions, questions, goals, assumptions, intermediate results, references,
    sub-goals, arguments, equations, variables, edge cases
""")
DONE = _split("""
    provided, shown, explained, covered, completed, included, met, addressed, verified,
    followed, justified, satisfied, achieved, identified, documented, solved, correct, relevant,
    present, clear, answered, considered, found, mentioned
""")
DONE_FORMS = """
    No {} | Some {} | Most {} | All {}
    no {} | half of the {} | all {}
    1 - No {} | 2 - Few {} | 3 - Some {} | 4 - Most {} | 5 - All {}
    0% of {} | 50% of {} | 100% of {}
    none of the {} | some of the {} | all of the {}
"""
UNDONE = _split("skipped, missed, ignored, omitted, missing, overlooked, incorrect, unexplained")
UNDONE_FORMS = """
    All {} | Some {} | No {}
    Many {} | Few {} | No {}
    5 - Many {} | 3 - Few {} | 1 - No {}
"""
FAULTS = _split("""
    errors, mistakes, hallucinations, contradictions, bugs, delays, omissions, biases,
    violations, inconsistencies, flaws, failures, inaccuracies, redundancies, ambiguities,
    crashes, distractions, vulnerabilities, interruptions, misunderstandings, gaps, fallacies,
    defects, deviations, conflicts, loops, detours, glitches, typos, misconceptions,
    misinterpretations, weaknesses, shortcomings, limitations, complaints, warnings, hazards,
    risks, threats, leaks, breaches, attacks, collisions, discrepancies, mismatches,
    exaggerations, digressions, repetitions, obstacles, damage, waste, stereotypes, insults,
    dead ends, false claims, missing steps, calculation errors, logical fallacies, factual
    errors, safety violations, grammar mistakes, unnecessary steps, redundant actions,
    irrelevant details, invalid actions, wrong turns, repeated actions, unsupported claims,
    formatting issues, security problems
""")
FAULT_FORMS = """
    Many {} | Some {} | Few {} | No {}
    Severe {} | Minor {} | No {}
    Frequent {} | Occasional {} | Rare {} | No {}
    full of {} | free of {}
    3+ {} | 1-2 {} | 0 {}
    contains {} | contains no {}
    contains many {} | contains some {} | contains no {}
    High number of {} | Moderate number of {} | Low number of {}
    Significant {} | Minimal {} | Absence of {}
    {} present | no {} present
    100% {} | 50% {} | 0% {}
    multiple {} | one or two {} | none
    with many {} | with few {} | without {}
    numerous {} | several {} | hardly any {}
    1 - Many {} | 2 - Some {} | 3 - No {}
    presence of {} | absence of {}
    High risk of {} | Moderate risk of {} | Low risk of {}
    5 or more {} | 1-4 {} | no {}
    Makes {} | Makes few {} | Makes no {}
    Extremely high amount of {} | Extremely low amount of {}
    major {} found | minor {} found | no {} found
    many {} detected | few {} detected | no {} detected
"""
ONE_FAULT = _split("""
    error, bias, risk, fraud, failure, exception, hallucination, conflict, vulnerability, bug,
    ambiguity, mistake, threat, anomaly, uncertainty, contradiction, noise, harm, delay
""")
DEALINGS = _split("""
    handling, mitigation, assessment, detection, prevention, recovery, avoidance, management,
    correction, resolution, identification, analysis, awareness, reporting, checking, reduction,
    acknowledgment, control, tolerance, minimization
""")
DEALING_FORMS = """
    no {} | some {} | full {}
    No {} | Limited {} | Moderate {} | Extensive {}
    No {} | Basic {} | Comprehensive {}
    lacks {} | adequate {} | excellent {}
    poor {} | fair {} | good {} | excellent {}
    low {} | medium {} | high {}
    lack of {} | some {} | strong {}
    0% {} | 50% {} | 100% {}
    1 - No {} | 2 - Partial {} | 3 - Complete {}
    inadequate {} | adequate {} | robust {}
    absence of {} | partial {} | complete {}
    shows no {} | shows some {} | shows thorough {}
    ineffective {} | somewhat effective {} | highly effective {}
    none | minimal {} | full {}
"""
DEALT = _split("""
    caught, fixed, addressed, avoided, detected, corrected, handled, resolved, prevented,
    identified, mitigated, acknowledged, reported, recognized, managed
""")
DEALT_FORMS = """
    No {0} {1} | Some {0} {1} | All {0} {1}
    {0} not {1} | {0} partially {1} | {0} fully {1}
    {0} are never {1} | {0} are sometimes {1} | {0} are always {1}
    0% of {0} {1} | 50% of {0} {1} | 100% of {0} {1}
    1 - No {0} {1} | 2 - Few {0} {1} | 3 - Most {0} {1} | 4 - All {0} {1}
    {0} ignored | {0} partly {1} | {0} fully {1}
    none of the {0} {1} | all of the {0} {1}
"""
VERBS = _split("handles, addresses, detects, corrects, avoids, prevents, identifies, resolves")
VERB_FORMS = """
    ignores all {0} | {1} some {0} | {1} all {0}
    ignores {0} | {1} some {0} | {1} all {0}
    never {1} {0} | sometimes {1} {0} | always {1} {0}
    rarely {1} {0} | often {1} {0} | always {1} {0}
    {1} no {0} | {1} some {0} | {1} most {0} | {1} all {0}
"""
MEASURES = _split("rate, count, frequency, level, amount")
MEASURE_FORMS = """
    High {} | Moderate {} | Low {}
    Very high {} | High {} | Low {} | Very low {}
    Excessive {} | Acceptable {} | Low {}
    1 - Extremely high {} | 2 - Average {} | 3 - Very low {}
"""
NEEDS = _split("""
    corrections, revisions, edits, interventions, clarifications, retries, rework, human
    assistance, external help, improvements
""")
NEED_FORMS = """
    many {} needed | some {} needed | no {} needed
    Major {} required | Minor {} required | No {} required
    frequent {} necessary | few {} necessary | no {} necessary
    requires many {} | requires few {} | requires no {}
"""
GOOD = _split("""
    clear, accurate, complete, relevant, coherent, consistent, concise, correct, precise,
    detailed, logical, efficient, effective, reliable, robust, helpful, useful, polite,
    organized, structured, readable, understandable, creative, original, innovative, thorough,
    rigorous, insightful, informative, appropriate, suitable, adequate, sufficient, convincing,
    persuasive, plausible, realistic, feasible, systematic, adaptable, flexible, responsive,
    safe, secure, fair, honest, transparent, interpretable, trustworthy, credible, valid,
    successful, satisfactory, engaging, empathetic, professional, respectful, intuitive,
    actionable, comprehensive, generalizable, reproducible, scalable, maintainable, well
    organized, well explained, well justified, easy to follow, easy to understand, on topic, up
    to date, goal-oriented, proactive, supported, justified, confident, legible, lucid,
    succinct, brief, smooth, fluent, fluid, seamless, natural, eloquent, articulate, expressive,
    vivid, nuanced, elegant, neat, tidy, simple, straightforward, direct, focused, targeted,
    specific, explicit, exact, factual, truthful, faithful, grounded, verified, verifiable,
    substantiated, authoritative, reputable, reasonable, rational, sensible, sound, solid,
    careful, cautious, attentive, diligent, meticulous, methodical, orderly, strategic,
    purposeful, decisive, resourceful, skillful, competent, capable, knowledgeable, experienced,
    qualified, independent, autonomous, stable, resilient, tolerant, sustainable, timely,
    prompt, quick, fast, rapid, swift, agile, optimized, streamlined, economical,
    cost-effective, productive, fruitful, valuable, beneficial, meaningful, impactful,
    memorable, interesting, compelling, inspiring, encouraging, motivating, supportive,
    friendly, warm, kind, caring, compassionate, considerate, patient, calm, courteous, tactful,
    diplomatic, ethical, responsible, legal, compliant, objective, impartial, neutral in tone,
    balanced, inclusive, diverse, varied, rich, deep, broad in coverage, extensible, modular,
    reusable, portable, testable, traceable, idiomatic, grammatical, polished, refined,
    sophisticated, modern, current, novel, inventive, imaginative, ingenious, clever, smart,
    intelligent, perceptive, discerning, reflective, self-explanatory, descriptive, instructive,
    educational, illuminating, constructive, collaborative, cooperative, communicative,
    interactive, personalized, tailored, customized, relatable, accessible, usable, workable,
    viable, practical, executable, functional, operational, correctly formatted, well
    documented, fully tested, aligned with the goal, conclusive, definitive, unambiguous,
    unbiased, undisputed, harmless, flawless, error-free, lossless, effortless, trusted,
    dependable, vigilant, aware, sincere, genuine, authentic
""")
GOOD_FORMS = """
    not {} | somewhat {} | very {}
    not at all {} | slightly {} | moderately {} | extremely {}
    not {} | partially {} | mostly {} | completely {}
    never {} | sometimes {} | always {}
    poor | {} | excellent
    1 - Not {} | 2 - Somewhat {} | 3 - {} | 4 - Very {}
    0% - Not {} | 50% - Somewhat {} | 100% - Fully {}
    rarely {} | usually {} | always {}
    far from {} | nearly {} | fully {}
    not {} | {}
    the solution is not {} | the solution is somewhat {} | the solution is very {}
"""
BAD = _split("""
    confusing, misleading, irrelevant, incorrect, inaccurate, incomplete, unclear, vague,
    ambiguous, verbose, redundant, repetitive, inefficient, inconsistent, illogical, harmful,
    biased, toxic, rude, offensive, slow, wrong, erroneous, superficial, generic, outdated,
    unsafe, risky, unreliable, unhelpful, disorganized, convoluted, complicated, wordy,
    intrusive, aggressive, hostile, flawed, buggy, careless, dangerous, impractical,
    unrealistic, unsupported, unjustified, inappropriate, hard to follow, difficult to
    understand, off topic, hallucinated, fabricated, contradictory, evasive, dismissive,
    arbitrary, random, deceptive, sloppy, cluttered, distracting, untruthful, false, fictional,
    invented, made up, baseless, unfounded, unverified, doubtful, dubious, questionable,
    suspicious, fuzzy, obscure, opaque, cryptic, muddled, garbled, incomprehensible,
    unintelligible, illegible, messy, chaotic, scattered, disjointed, fragmented, incoherent,
    choppy, rambling, long-winded, tedious, boring, dull, bland, monotonous, mechanical,
    robotic, stilted, awkward, clumsy, unnatural, forced, shallow, simplistic, naive, crude,
    rough, hasty, rushed, negligent, inattentive, lazy, passive, hesitant, indecisive, erratic,
    unstable, fragile, brittle, flaky, rigid, inflexible, stubborn, aimless, wasteful, costly,
    expensive, sluggish, cumbersome, delayed, late, stuck, looping, broken, faulty, defective,
    corrupted, malformed, obsolete, stale, deprecated, copied, plagiarized, derivative,
    unoriginal, stereotyped, discriminatory, prejudiced, partisan, one-sided, manipulative,
    exploitative, malicious, abusive, violent, threatening, insulting, disrespectful, impolite,
    condescending, arrogant, patronizing, cold, indifferent, insensitive, callous, impatient,
    pushy, preachy, judgmental, sarcastic, defensive, argumentative, unprofessional, unethical,
    illegal, insecure, vulnerable, leaky, invasive, hazardous, destructive, disruptive,
    counterproductive, useless, pointless, futile, unusable, unworkable, impossible, infeasible,
    unsuitable, unacceptable, poor in quality, weak, insufficient, inadequate, deficient,
    sparse, patchy, untested, undocumented, unexplained, unfinished, unresolved, unanswered,
    exaggerated, speculative, subjective, overconfident, overcomplicated, excessive in length,
    bloated, noisy, distorted, contrived, unfair, unequal, sycophantic, circular, tangential,
    digressive, hidden, painful, frustrating, annoying, disappointing, discouraging, stressful,
    confused
""")
BAD_FORMS = """
    very {} | somewhat {} | not {}
    extremely {} | moderately {} | slightly {} | not at all {}
    completely {} | partially {} | not {}
    always {} | sometimes {} | never {}
    {} | acceptable | excellent
    1 - Very {} | 2 - Somewhat {} | 3 - Not {}
    {} | not {}
    the answer is very {} | the answer is somewhat {} | the answer is not {}
    {} answer | partially correct answer | correct answer
"""
PAIRS = _split("""
    incorrect > correct, unclear > clear, incomplete > complete, irrelevant > relevant,
    inefficient > efficient, inconsistent > consistent, illogical > logical, unsafe > safe,
    disorganized > organized, inaccurate > accurate, inappropriate > appropriate, wrong > right,
    verbose > concise, vague > precise, confusing > clear, slow > fast, biased > fair, rude >
    polite, superficial > deep, rigid > flexible, invalid > valid, unsuccessful > successful,
    ineffective > effective, unreadable > readable, failed > successful, fallible > infallible,
    worthless > invaluable, questionable > irrefutable, uninterpretable > interpretable,
    incoherent > coherent, impolite > polite, insufficient > sufficient, false > true, not
    achieved > achieved, unresolved > resolved, unsupported > supported, hostile > friendly
""")
PAIR_FORMS = """
    {0} | {1}
    very {0} | {0} | {1} | very {1}
    {0} | partially {1} | {1}
    {0} | somewhat {1} | very {1}
    completely {0} | mostly {0} | mostly {1} | completely {1}
    1 - {0} | 2 - partially {1} | 3 - completely {1}
    {0} | average | {1}
    mostly {0} | mostly {1}
    {0} solution | partially {1} solution | {1} solution
"""
UNITS = _split("steps, seconds, minutes, calls, tokens, actions, turns, attempts, words, dollars")
UNIT_FORMS = """
    more than 10 {} | 5-10 {} | fewer than 5 {}
    > 10 {} | 5-10 {} | < 5 {}
    10+ {} | 5-9 {} | 1-4 {}
    over 20 {} | 10 to 20 {} | under 10 {}
    20 or more {} | 10-19 {} | 0-9 {}
"""
# No direction: the best is in the middle, or nothing says whether the thing is wanted.
MIDDLE_FORMS = """
    too {0} | appropriate | too {1}
    far too {0} | about right | far too {1}
    overly {0} | balanced | overly {1}
"""
MIDDLES = _split("""
    basic > advanced, short > long, simple > complex, brief > detailed, formal > casual, literal
    > free, cautious > bold, slow > fast, vague > specific, few > many
""")
UNKNOWN = _split("horizon, surface, budget, window, ledger, stance, profile, boundary, topology")
UNKNOWN_FORMS = """
    no {} | some {} | full {}
    low {} | medium {} | high {}
    minimal {} | complete {}
"""


@dataclass(frozen=True)
class Scale:
    """Levels worst first, their class and form, and whether they have an order at all."""

    family: str
    form: str
    levels: tuple[str, ...]
    directed: bool = True


def _filled(
    family: str, forms: str, fillings: list[tuple[str, ...]], **more: bool
) -> Iterator[Scale]:
    for form, words in product(filter(None, map(str.strip, forms.splitlines())), fillings):
        levels = [level.strip() for level in form.split("|")]
        yield Scale(family, form, tuple(level.format(*words) for level in levels), **more)


def _alone(words: list[str]) -> list[tuple[str, ...]]:
    return [(word,) for word in words]


def _pairs(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(map(str.strip, word.split(">"))) for word in words]


def _joined(*lists: list[str]) -> list[tuple[str, ...]]:
    return [(" ".join(words),) for words in product(*lists)]


def generate() -> list[Scale]:
    """All scales, in a fixed order."""
    return [
        *_filled("quality", QUALITY_FORMS, _alone(QUALITIES)),
        *_filled("thing done", DONE_FORMS, _joined(THINGS, DONE)),
        *_filled("thing undone", UNDONE_FORMS, _joined(THINGS, UNDONE)),
        *_filled("fault", FAULT_FORMS, _alone(FAULTS)),
        *_filled("dealing", DEALING_FORMS, _joined(ONE_FAULT, DEALINGS)),
        *_filled("fault dealt with", DEALT_FORMS, list(product(FAULTS, DEALT))),
        *_filled("verb of dealing", VERB_FORMS, list(product(FAULTS, VERBS))),
        *_filled("measure of a fault", MEASURE_FORMS, _joined(ONE_FAULT, MEASURES)),
        *_filled("work needed", NEED_FORMS, _alone(NEEDS)),
        *_filled("good adjective", GOOD_FORMS, _alone(GOOD)),
        *_filled("bad adjective", BAD_FORMS, _alone(BAD)),
        *_filled("opposites", PAIR_FORMS, _pairs(PAIRS)),
        *_filled("unit", UNIT_FORMS, _alone(UNITS)),
        *_filled("best in the middle", MIDDLE_FORMS, _pairs(MIDDLES), directed=False),
        *_filled(
            "fault of something unknown", UNKNOWN_FORMS, _joined(ONE_FAULT, UNKNOWN), directed=False
        ),
    ]


def outcome(scale: Scale) -> str:
    """right, unclear or inverted: read in both directions, the worse of the two."""
    told = order_of(scale.levels).verdict, order_of(scale.levels[::-1]).verdict
    directions = "worst_to_best", "best_to_worst"
    if not scale.directed:
        return "inverted" if set(told) & set(directions) else "right"
    if told == directions:
        return "right"
    wrong = told[0] == directions[1] or told[1] == directions[0]
    return "inverted" if wrong else "unclear"


def main() -> int:
    """Read all scales, print a line for each class, end with the line of figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="list every scale that is not right")
    parser.add_argument("--forms", action="store_true", help="a line for each form as well")
    wanted = parser.parse_args()
    scales = generate()
    outcomes = [(scale, outcome(scale)) for scale in scales]
    rows = []
    for family in dict.fromkeys(scale.family for scale in scales):
        counts = Counter(what for scale, what in outcomes if scale.family == family)
        rows.append(_row(family, counts))
        print(f"{family}: {rows[-1].measured}")
        forms = Counter((s.form, what) for s, what in outcomes if s.family == family)
        for form in dict.fromkeys(s.form for s in scales if s.family == family):
            shown = {w: n for w in ("inverted", "unclear") if (n := forms[form, w])}
            if wanted.forms and shown:
                print(f"    {form}: {shown}")
    for scale, what in outcomes:
        if wanted.all and what != "right":
            print(f"  {what}: {' | '.join(scale.levels)}")
    rows.append(_row("all generated scales", Counter(what for _, what in outcomes)))
    print(f"all: {rows[-1].measured}")
    return finish("scales", rows)


def _row(what: str, counts: Counter[str]) -> Row:
    n = counts.total()
    share = f"{counts['unclear']} unclear ({counts['unclear'] / n:.1%})"
    measured = f"{n:,}: {counts['inverted']} inverted, {share}"
    met = not counts["inverted"] and counts["unclear"] <= UNCLEAR * n
    return Row(what, measured, f"0 inverted, unclear <= {UNCLEAR:.0%}", met)


if __name__ == "__main__":
    sys.exit(main())
