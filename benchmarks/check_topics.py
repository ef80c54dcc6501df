"""Rules for the activity lists of the planning tests: what a program can check of them.

    python -m benchmarks.check_topics FILE...

A FILE is {"topics": [{"role": "Waiter", "activities": ["table seven bread delivery", ...]}, ...]}.
Give all files at once: roles and tool names must be unique over all of them. Prints one line per
violation (rule, role, phrases, value), then per role the number of head nouns, the most used word
and the highest cosine, and exits 1 when there is a violation, 2 when a file cannot be read.
That no two activities of a role overlap or have a natural order, only a reader can check.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder

ROLES_PER_FILE = 25
ACTIVITIES = 20  # per role
WORDS = (2, 5)  # per activity, articles and prepositions counted, a hyphenated word as one
MIN_HEADS = 15  # different head nouns per role
MAX_USES = 3  # activities of a role that may share a content word
MAX_COSINE = 0.70  # exclusive; the embedder's threshold for paraphrases
MAX_NAME = 60  # characters of a tool name

SHAPE = re.compile(r"[A-Za-z]+(-[A-Za-z]+)*( [A-Za-z]+(-[A-Za-z]+)*)*")
ACRONYM = re.compile(r"[A-Z]{2,5}")
ARTICLES = frozenset({"a", "an", "the"})
# The head noun is the last word in front of one of these.
PREPOSITIONS = frozenset(["of", "for", "with", "to", "in", "on", "from", "at", "about"])
FUNCTION_WORDS = ARTICLES | PREPOSITIONS | {"by"}

# Words of the clause forms: inside an activity they would make a sentence ambiguous.
TERMINALS = re.compile(
    r"\b(?:and|or|but|yet|while|whereas|which|when|tim(?:e|es|ed|ing)"
    r"|before|beforehand|after|afterwards?|prior|follow\w*|preced\w*|subsequent\w*|posterior\w*"
    r"|ahead|earl(?:y|ier|iest)|late|later|latest|advanc\w*|front\w*|behind"
    r"|wak(?:e|es|en|ing)|woken?|once|soon|sooner|soonest|then|next|first|firstly"
    r"|last|lasts|lasted|lasting|lastly|start\w*|finish\w*|begin\w*|began|begun"
    r"|end|ends|ended|ending|endings|happen\w*|occur\w*|execut\w*|perform\w*"
    r"|carr(?:y|ies|ied|ying)|done|(?:tak\w+|took) place|complet\w*|com(?:e|es|ing)|came"
    r"|schedul\w*|succe(?:ed|ss)\w*)\b",
    re.IGNORECASE,
)

# Heads in s that are singular; those in -ss and -sis are so as well.
_SINGULAR_S = """bus gas lens canvas atlas census status bonus virus campus chorus syllabus
prospectus apparatus corpus cactus citrus hummus couscous asparagus iris tennis"""
_PLURAL = """people children men women feet teeth mice geese oxen data media criteria phenomena dice
staff police cattle alumni fungi bacteria curricula personnel"""
SINGULAR_S = frozenset(_SINGULAR_S.split())
PLURAL = frozenset(_PLURAL.split())


@dataclass(frozen=True)
class Topic:
    """A role with its activities, and the file it stands in."""

    role: str
    activities: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Violation:
    """One broken rule: where, by which phrases, and the offending value."""

    rule: str
    role: str
    phrases: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        quoted = " | ".join(self.phrases)
        return f"{self.rule}: {self.role}: {quoted or '-'}: {self.value}"


def read_topics(path: Path) -> list[Topic]:
    """Topics of one file. Raises ValueError when it has another form, OSError when unreadable."""
    data: Any = json.loads(path.read_text(encoding="utf-8"))
    topics = data.get("topics") if isinstance(data, dict) else None
    if not isinstance(topics, list):
        raise ValueError(f'{path}: expected {{"topics": [...]}}')
    found = []
    for number, topic in enumerate(topics, 1):
        if not isinstance(topic, dict) or set(topic) != {"role", "activities"}:
            raise ValueError(f"{path}: topic {number} must have the keys role and activities")
        role, activities = topic["role"], topic["activities"]
        texts = isinstance(activities, list) and all(isinstance(a, str) for a in activities)
        if not isinstance(role, str) or not texts:
            raise ValueError(f"{path}: topic {number}: role is a text, activities a list of texts")
        found.append(Topic(role, tuple(activities), path.name))
    return found


def head_noun(activity: str) -> str:
    """Last word in front of the first preposition, else the last word; in lower case."""
    words = activity.casefold().split()
    cut = next((i for i, word in enumerate(words) if i and word in PREPOSITIONS), len(words))
    return words[cut - 1]


def crude_singular(word: str) -> str:
    """The word without a plural ending; crude, since it only has to group equal words."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def content_words(activity: str) -> set[str]:
    """Case-folded, crudely singular words without function words; hyphenated words are split."""
    words = re.split(r"[ -]", activity.casefold())
    return {crude_singular(word) for word in words if word not in FUNCTION_WORDS}


def tool_name(activity: str) -> str:
    """Snake case of the phrase."""
    return re.sub(r"[^a-z0-9]+", "_", activity.casefold()).strip("_")


def _head_fault(head: str) -> str | None:
    if head in PLURAL:
        return f"head {head!r} is plural"
    if head.endswith("s") and not head.endswith(("ss", "sis")) and head not in SINGULAR_S:
        return f"head {head!r} ends in s"
    return None


def _phrase_faults(activity: str) -> Iterator[tuple[str, str]]:
    """Pairs of rule and value for what is wrong with one phrase by itself."""
    if not SHAPE.fullmatch(activity):
        yield "form", "only letters, hyphens inside words and single spaces"
        return
    words = activity.split()
    if not WORDS[0] <= len(words) <= WORDS[1]:
        yield "length", f"{len(words)} words, wanted {WORDS[0]} to {WORDS[1]}"
    if words[0].casefold() in ARTICLES:
        yield "article", f"leading {words[0]!r}"
    for word in re.split(r"[ -]", activity):
        if word != word.lower() and not ACRONYM.fullmatch(word):
            yield "case", f"{word!r} is neither lower case nor an acronym"
    for match in TERMINALS.finditer(activity):
        yield "terminal", f"{match.group()!r} belongs to the clause forms"
    fault = _head_fault(head_noun(activity))
    if fault:
        yield "head", fault
    if len(tool_name(activity)) > MAX_NAME:
        yield "name", f"tool name has {len(tool_name(activity))} characters, at most {MAX_NAME}"


def check_topic(topic: Topic) -> list[Violation]:
    """Violations within one role, cosines aside."""
    role, activities = topic.role, topic.activities
    found = [
        Violation(rule, role, (activity,), value)
        for activity in activities
        for rule, value in _phrase_faults(activity)
    ]
    if len(activities) != ACTIVITIES:
        text = f"{len(activities)} activities, wanted {ACTIVITIES}"
        found.append(Violation("count", role, (), text))
    spelled = [activity for activity in activities if SHAPE.fullmatch(activity)]
    heads = Counter(head_noun(activity) for activity in spelled)
    if len(heads) < MIN_HEADS:
        repeated = ", ".join(f"{head} {n}" for head, n in heads.most_common() if n > 1)
        text = f"{len(heads)} head nouns, at least {MIN_HEADS} wanted; repeated: {repeated}"
        found.append(Violation("heads", role, (), text))
    for word, uses in word_uses(spelled).items():
        if len(uses) > MAX_USES:
            found.append(Violation("words", role, tuple(uses), f"{word!r} in {len(uses)}"))
    return found


def word_uses(activities: Iterable[str]) -> dict[str, list[str]]:
    """Content word to the activities that hold it."""
    uses: dict[str, list[str]] = {}
    for activity in activities:
        for word in sorted(content_words(activity)):
            uses.setdefault(word, []).append(activity)
    return uses


def check_across(topics: Sequence[Topic]) -> list[Violation]:
    """Numbers of roles per file, roles told twice, and tool names that clash."""
    found = []
    for file, count in Counter(topic.file for topic in topics).items():
        if count != ROLES_PER_FILE:
            found.append(Violation("roles", file, (), f"{count}, wanted {ROLES_PER_FILE}"))
    for role, count in Counter(topic.role.casefold() for topic in topics).items():
        if count > 1:
            found.append(Violation("roles", role, (), f"told {count} times"))
    owners: dict[str, list[str]] = {}
    for topic in topics:
        for activity in topic.activities:
            owners.setdefault(tool_name(activity), []).append(topic.role)
    for name, roles in owners.items():
        if len(roles) > 1:
            found.append(Violation("unique", ", ".join(roles), (name,), f"{len(roles)} tools"))
    return found


def cosines(topic: Topic, embedder: Embedder) -> list[tuple[float, str, str]]:
    """Every pair of the role's activities with its cosine, highest first."""
    vectors = embedder.embed(topic.activities).astype("float64")
    table = vectors @ vectors.T
    pairs = combinations(range(len(topic.activities)), 2)
    named = [(float(table[i, j]), topic.activities[i], topic.activities[j]) for i, j in pairs]
    return sorted(named, reverse=True)


def _summary(topic: Topic, pairs: Sequence[tuple[float, str, str]]) -> str:
    heads = len({head_noun(activity) for activity in topic.activities})
    uses = word_uses(topic.activities)
    word = max(uses, key=lambda w: len(uses[w]))
    top = "no pair" if not pairs else f"{pairs[0][0]:.3f} ({pairs[0][1]} | {pairs[0][2]})"
    return f"{topic.role}: {heads} heads, {word!r} in {len(uses[word])}, highest cosine {top}"


def main(paths: Sequence[str]) -> int:
    """Exit code: 0 all rules hold, 1 violations, 2 no file or an unreadable one."""
    if not paths:
        print("usage: check_topics.py FILE...", file=sys.stderr)
        return 2
    try:
        topics = [topic for path in paths for topic in read_topics(Path(path))]
    except (OSError, ValueError) as error:
        print(f"check_topics: {error}", file=sys.stderr)
        return 2
    from agenteval.models.embeddings import make_embedder

    embedder = make_embedder(None)
    found = check_across(topics)
    summaries = []
    for topic in topics:
        found += check_topic(topic)
        if any(not activity.strip() for activity in topic.activities) or not topic.activities:
            continue  # already a violation, and a blank text has no vector
        pairs = cosines(topic, embedder)
        found += [
            Violation("cosine", topic.role, (one, other), f"{value:.3f}")
            for value, one, other in pairs
            if value >= MAX_COSINE
        ]
        summaries.append(_summary(topic, pairs))
    for violation in found:
        print(violation)
    print(*summaries, sep="\n")
    print(f"{len(topics)} roles, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
