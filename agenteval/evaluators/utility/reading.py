"""From a judge's whole reply to answers: the ladder of `models.reply`, then what people write.

labelled   no JSON, but a line `criterion: value`, a section, a row or a tag for each criterion
prose      one criterion, and the only score that the text states

A reply that was cut off, one that declines and one in no form are told apart in the message and in
the status; none of them is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.answers import (
    LABEL_KEYS,
    NAME_KEYS,
    REASON_KEYS,
    Answer,
    AnswerReader,
    Answers,
    NoAnswer,
    answer_of,
    leaves_of,
    names_of,
    read_answers,
)
from agenteval.evaluators.utility.labels import NUMBER, fold
from agenteval.models.reply import behind_thinking, declines, meant_as_json, parse_reply, tidied
from agenteval.records import Criterion, slug


def read_text(
    text: str, criteria: Sequence[Criterion], finish: str = "stop"
) -> tuple[Answers, str | None]:
    """One Answer or NoAnswer per leaf of `criteria`, and the rung; None when nothing was read.

    `finish` is the reply's reason to end. Never raises for what stands in the text.
    """
    reader = AnswerReader(criteria)
    try:
        parsed = parse_reply(text, reader.speaks, doubled=True)
    except ReplyError as error:
        return _without_json(text, criteria, finish) or _unread(text, str(error), finish, criteria)
    answers = reader.read(parsed.value)
    nothing = all(
        isinstance(answer, NoAnswer) and answer.status == "unscored:missing"
        for answer in answers.by_path.values()
    )
    if parsed.rung == "salvaged" and nothing:
        early = "the reply broke off before its first answer was complete"
        return _unread(text, early, finish, criteria)
    return answers, parsed.rung


def _unread(
    text: str, why: str, finish: str, criteria: Sequence[Criterion]
) -> tuple[Answers, None]:
    if finish == "length":
        failed = NoAnswer("unscored:parse", f"{why} (cut off by the length limit)")
    elif declines(text):
        failed = NoAnswer("unscored:refusal", "the reply declines to answer")
    else:
        failed = NoAnswer("unscored:parse", why)
    return Answers({path: failed for path, _ in leaves_of(criteria)}), None


def _without_json(
    text: str, criteria: Sequence[Criterion], finish: str
) -> tuple[Answers, str] | None:
    """Answers of a reply in which nothing was meant as JSON; None when it holds none."""
    try:
        body = behind_thinking(tidied(text))
    except ReplyError:
        return None
    body = re.sub(r"\[\[([^\[\]\n]{1,40})\]\]", r"\1", body)  # "Rating: [[5]]"
    if meant_as_json(body):  # a broken answer, whose lines may belong to a draft or a quotation
        return None
    ended = text.rstrip(" \t").endswith("\n")
    whole = finish == "stop"
    if lines := _read_lines(f"{body}\n" if ended else body, criteria, whole=whole):
        return lines, "labelled"
    asked = leaves_of(criteria)
    level = _stated_score(body, *asked[0]) if len(asked) == 1 and whole else None
    if level is None or declines(body):
        return None
    return read_answers({asked[0][0]: level}, criteria), "prose"


# ---------------------------------------------------------------- lines, sections, tables, tags

_MARKUP = r"[\s*_`\"]{0,8}"
_LEAD = rf"\s{{0,20}}(?:#{{1,6}}\s)?(?:[-*+•]\s)?{_MARKUP}(?:\d{{1,2}}[.)]\s)?{_MARKUP}"
_LABELLED = re.compile(
    rf"{_LEAD}(?P<name>[^\s*_`\":=：|#][^:=：|\n]{{0,100}}?){_MARKUP}[:=：](?P<said>[^\n]{{0,4000}})"
)
_HEADING = re.compile(
    r"\s{0,20}(?:#{1,6}\s|(?=\*\*|__|\d{1,2}[.)]\s))[\s*_]{0,8}(?:\d{1,2}[.)]\s)?"
    r"(?P<name>[^\n*|#]{1,100}?)[\s*_#:]{0,8}"
)
_DECORATION = re.compile(r"[\s*_=#`~-]*|\s{0,20}#{1,6}\s[^\n]{0,200}|</?\w{1,20}>|```\w{0,20}")
_TAG = re.compile(
    r"<(?P<tag>[\w-]{1,60})(?:\s(?:name|id)=[\"'](?P<own>[^\"'<>]{1,100})[\"'])?>"
    r"(?:(?P<said>[^<>]{0,4000})</(?P=tag)>)?"
)
_RULE = re.compile(r"\|(?:\s{0,40}:?-{1,80}:?\s{0,40}\|)+")
_IN_BRACKETS = re.compile(r"(?P<name>[^()]{1,80}?)\s?\((?P<said>[^()]{1,40})\)")
_OUT_OF = re.compile(r"\(\s?(out of [^()]{1,20})\)", re.I)
# Between a level and the reason for it in the same line.
_BEHIND = re.compile(r"\s[-–—]{1,2}\s|[.;]\s|\s\(")
# A reason does not begin by taking the level back, and speaks of no other score.
_LEVEL_TAKEN_BACK = re.compile(
    r"\W*(?:[\d/]|(?:or|to|but|not?|nor|out of|actually|rather|if)\b)|.*\b(?:score|rating|grade)\b",
    re.I,
)
_VERDICTS = frozenset(map(slug, (*LABEL_KEYS, "final answer", "verdict", "final score")))
_OTHER_REASONS = ("analysis", "feedback", "comment", "comments", "summary", "conclusion", "overall",
                  "overall assessment")  # fmt: skip
_REASONS = frozenset(map(slug, (*REASON_KEYS, *_OTHER_REASONS)))
_NAMES = frozenset(map(slug, (*NAME_KEYS, "dimension", "aspect", "category")))
_MOST_LINES = 2000


def _read_lines(text: str, criteria: Sequence[Criterion], *, whole: bool) -> Answers | None:
    """Answers in the forms that people use: lines `Clarity: fair`, sections, tables, tags.

    None when the text is not in the form, or does not answer each leaf. A line in prose may be a
    quotation, so it is read only where the form leaves no doubt: from the first such line on there
    is nothing but such lines, reasons and decoration, and no criterion has two that differ. Where
    all of them are set off (in bold, as items of a list), prose may stand behind them, if it does
    behind each. A section is a heading that is a criterion's name with a line `Score: 4` beneath;
    between the two, and behind `Explanation:`, there may be prose. A table has a column of names
    and one of levels, a tag is `<clarity>fair</clarity>`: both are read as lines.

    `whole` is False when the text may have been cut off: its last line then counts only with its
    end. With a single criterion `Score: ...` and the like name it too, and a text that is nothing
    but one of its values answers it.
    """
    asked = dict(leaves_of(criteria))
    names = names_of(list(asked.items()))
    if len(asked) == 1:
        (only,) = asked
        names = dict.fromkeys(_VERDICTS, only) | names
        if whole and "\n" not in text.strip():
            answers = read_answers({only: text.strip()}, criteria)
            if not answers.missing():
                return answers
    lines = text.split("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES:
        return None
    plain = "\n".join(_without_tables(lines if whole else lines[:-1], names))
    plain = _TAG.sub(lambda tag: _tag_as_line(tag, names), plain)
    rows: list[dict[str, str]] = []
    for path, *said in _entries(plain.split("\n"), names) or ():
        labels = [label for text in said if (label := _level_of(text, asked[path])) is not None]
        if not labels:  # names a criterion, and says something that is none of its values
            return None
        rows.extend({"criterion": path, "label": label} for label in labels)
    answers = read_answers(rows, criteria)
    return answers if rows and not answers.missing() else None


def _level_of(words: str, leaf: Criterion) -> str | None:
    """The part of a line behind `Name:` that is a level; a reason may follow: "fair - two gaps"."""
    words = _OUT_OF.sub(r"\1", words.strip().rstrip(",").strip('*_`" \t'))
    if isinstance(answer_of(words, leaf), Answer):
        return words
    heads = [(words[: cut.start()], words[cut.end() :]) for cut in _BEHIND.finditer(words[:300])]
    for head, reason in reversed(heads[:5]):
        if isinstance(answer_of(head := head.strip('*_`" \t'), leaf), Answer):
            levels = [fold(level) for level in leaf.accepted_values if fold(level) != fold(head)]
            taken_back = _LEVEL_TAKEN_BACK.match(reason) or fold(reason).startswith(tuple(levels))
            return None if taken_back else head
    return None


def _entries(lines: Sequence[str], names: dict[str, str]) -> list[tuple[str, ...]] | None:
    """The path and what is said, of each line that answers; None where something stands between.

    What stands in brackets behind a name may be the level ("Clarity (4/5): ..."), or the scale.
    """
    entries: list[tuple[str, ...]] = []
    explained: list[bool] = []  # of each entry: whether prose stands behind it
    section: str | None = None  # the criterion whose heading stands above
    sections = prose = contested = False  # `prose`: it may stand here
    marked = True  # every entry is set off as a heading, in bold or as an item of a list
    for line in lines:
        entry = _LABELLED.fullmatch(line)
        name, *words = (entry["name"], entry["said"].strip(' \t*_`"')) if entry else ("", "")
        if bracketed := _IN_BRACKETS.fullmatch(name):
            name, words = bracketed["name"], [*words, bracketed["said"]]
        words = list(filter(None, words))
        heading = None if words else _HEADING.fullmatch(line)
        title = name or (heading["name"] if heading else "")
        path = section if section and slug(name) in _VERDICTS else names.get(slug(title))
        if path is not None and words:
            entries.append((path, *words))
            explained.append(False)
            marked = marked and (section is not None or line.lstrip()[:1] in "#*_-+•0123456789")
            prose = False
        elif path is not None:
            section, sections, prose = path, True, True
        elif slug(name) in _REASONS:
            prose = section is not None
            explained[-1:] = [True] * bool(entries)
        elif sections and heading is not None and line.lstrip().startswith("#"):
            section, prose = None, True
        elif (
            entries and not prose and not (len(line) <= 200 and _DECORATION.fullmatch(line.strip()))
        ):
            contested = explained[-1] = True
    each_explained = marked and len(entries) > 1 and all(explained)
    return None if contested and not each_explained else entries


def _without_tables(lines: Sequence[str], names: dict[str, str]) -> Iterator[str]:
    """The lines; rows of a table with a column of levels as `name: level`."""
    columns: tuple[int, int] | None = None
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        row = line.strip()
        if not (row.startswith("|") and row.endswith("|")):
            columns = None
            yield line
            continue
        cells = [cell.strip() for cell in row[1:-1].split("|")]
        head = bool(_RULE.fullmatch(following.strip()))
        if head:
            columns = _columns(cells)
        if columns is None:
            yield line
        elif not head and not _RULE.fullmatch(row) and max(columns) < len(cells):
            name, level = (cells[column] for column in columns)
            if slug(name.strip("*_` ")) in names:  # a row of totals is none of the criteria
                yield f"{name}: {level}"


def _columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """The columns of names and of levels, when the heads say so and only once."""
    heads = [slug(cell.split("(")[0].strip("*_` ")) for cell in cells]
    names = [i for i, head in enumerate(heads) if head in _NAMES]
    levels = [i for i, head in enumerate(heads) if head in _VERDICTS]
    return (names[0], levels[0]) if len(names) == len(levels) == 1 else None


def _tag_as_line(tag: re.Match[str], names: dict[str, str]) -> str:
    name = tag["own"] or tag["tag"]
    if slug(name) not in {*names, *_VERDICTS, *_REASONS}:
        return tag.group()
    content = (tag["said"] or "").strip()
    if "\n" in content and slug(name) not in _REASONS:  # lines, not one level
        return f"\n{name}:\n{content}\n"
    return f"\n{name}: {' '.join(content.split())}\n"


# ---------------------------------------------------------------- a score in running prose

_SPACE = r"[\s*_`]{0,8}"
_WORDS = r"(?:[^\s.:;!?]{1,30}\s){0,12}?"
_SCORE = r"(?:score|rating|grade)"
_SAYING = rf"""(?:
    \b{_SCORE}(?:\s?\([^()]{{1,30}}\)|\s(?:for|of|on|in)\s{_WORDS}(?:[^\s.:;!?]{{1,30}})?)?
    {_SPACE}(?P<is>[:=]|\s?[-–—]\s|\s?\b(?:is|was)\s)
  | \[result\]{_SPACE}(?:{_SCORE}\s?:)?
  | \b(?:giv(?:e|es|ing)|assign(?:s|ing)?|award(?:s|ing)?|receives?|earns?|deserves?|gets?|merits?
      |warrants?|justif(?:y|ies)|(?:results?|resulting)\sin|(?:leads?|leading)\sto)
    \s{_WORDS}{_SCORE}\sof\s
  | \bi(?:['’](?:d|ll)|\swould|\swill)?(?:\s\w{{1,20}})?\s(?:rate|score|grade)\s{_WORDS}
)"""
_NUMBER = (
    rf"(?:{NUMBER})(?:\s?/\s?(?:{NUMBER})|\s(?:out\s)?of\s(?:{NUMBER})|%)?(?:\s(?:stars?|points?))?"
)
# What follows a score: the end of the sentence, or a reason.
_END = (
    rf"(?={_SPACE}(?:$|[.,;!](?:\s|$)|\)|\s[-–—]{{1,2}}\s(?!\d)|\(|"
    r"(?:because|since|as|for|due|on|based|given|overall)\b))"
)
_NOT_STATED = re.compile(
    r"\b(?:if|unless|could|might|may|should|cannot|not|never|neither|instead|rather than|between|"
    r"claim\w*|says?|states?|asks?|demands?|instruct\w*|tells?|wants?|ends|writes?|written|reads?|"
    r"contains?|includes?|previous\w*|initial\w*|original\w*|reference|other|another|example|"
    r"minimum|maximum|at (?:least|most)|"
    r"would(?! (?:\w+ )?(?:rate|score|grade|give|assign|award)\b))\b|n['’]t\b|e\.g\.|[?\"“”«»>]"
)
_SCORE_TAKEN_BACK = re.compile(r"\b(?:if|unless|could|might|would|or|instead|rather)\b|[\d?]")
_SCALE = re.compile(
    r"\bon (?:an?|the) (?:\S{1,20} )?scale (?:of|from) \d{1,3} ?(?:to|[-–—]) ?(\d{1,3})\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_]{0,3}\s+|\n+")
_MOST_CHARS = 100_000


def _stated_score(text: str, path: str, leaf: Criterion) -> str | None:
    """The level that a reply states for its only criterion; None when it states none, or two.

    It is said in so many words (`Score: 4/5`, "I would rate it 4 out of 5", `[RESULT] 4`), in the
    last sentence or as the whole first line, and whatever else is stated in the reply is the same.
    """
    if len(text) > _MOST_CHARS:
        return None
    text = re.sub(r":([ \t*_]{0,8})\n\s{0,20}", r":\1 ", text.strip())  # a score beneath its word
    sentences = [s for s in _SENTENCE_END.split(text) if any(map(str.isalnum, s))]
    stated = [_stated(" ".join(sentence.casefold().split()), leaf) for sentence in sentences]
    names = {**dict.fromkeys(_VERDICTS, path), **names_of([(path, leaf)])}
    lines = []  # the level of each line `Score: 4`; a quotation of levels counts, too
    for line in text.split("\n"):
        entry = _LABELLED.fullmatch(line)
        named = entry and slug(entry["name"]) in names
        lines.append(_label(_level_of(entry["said"], leaf) or "", leaf) if entry and named else "")
    labels = {level for levels in stated for level in levels} | set(filter(None, lines))
    if not stated or len(labels) != 1 or not (lines[0] or len(stated[-1]) == 1):
        return None
    return labels.pop() or None  # "": on another scale


def _stated(sentence: str, leaf: Criterion) -> list[str]:
    """The level of each score that a sentence states, "" for one that is on another scale.

    A sentence that quotes, denies, compares or sets a condition states nothing.
    """
    levels = []
    for match in _statement(leaf.accepted_values).finditer(sentence):
        before, level, rest = (
            sentence[: match.start("said")],
            match["said"],
            sentence[match.end() :],
        )
        worded = not any(map(str.isdigit, level)) and fold(level) in map(fold, leaf.accepted_values)
        if worded and (match["is"] or ":") not in ":=":  # "the rating is clear"
            continue
        scale = _SCALE.search(sentence)
        if scale:
            level = f"{level}/{scale[1]}" if level.replace(".", "").isdigit() else level
            before, rest = _SCALE.sub("", before), _SCALE.sub("", rest)
        if not _NOT_STATED.search(before) and not _SCORE_TAKEN_BACK.search(rest):
            levels.append(_label(level, leaf))
    return levels


def _label(words: str, leaf: Criterion) -> str:
    answer = answer_of(words, leaf)
    return (answer.label or "") if isinstance(answer, Answer) else ""


@lru_cache(maxsize=64)
def _statement(levels: tuple[str, ...]) -> re.Pattern[str]:
    worded = "|".join(re.escape(fold(level)) for level in sorted(levels, key=len, reverse=True))
    stated = rf"(?P<said>{_NUMBER}{'|' if worded else ''}{worded})"
    return re.compile(rf"(?x:{_SAYING}){_SPACE}(?:an?\s)?{_SPACE}{stated}{_END}")
