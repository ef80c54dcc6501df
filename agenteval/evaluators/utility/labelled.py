"""Answers in the forms that people use: lines `Clarity: fair`, sections, tables, tags.

A line in prose may be a quotation. So it is read only where the form leaves no doubt: from the
first such line on there is nothing but such lines, reasons and decoration, every criterion that was
asked for has one, and none has two that differ. Where all of them are set off (in bold, as items of
a list), prose may stand behind them, if it does behind each. A section is a heading that is a
criterion's name with a line `Score: 4` beneath; between the two, and behind `Explanation:`, there
may be prose. A table has a column of names and one of levels, a tag is `<clarity>fair</clarity>`:
both are read as lines. Behind a level a reason may follow: `Clarity: fair - two gaps`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agenteval.evaluators.utility.answers import (
    LABEL_KEYS,
    NAME_KEYS,
    REASON_KEYS,
    Answer,
    Answers,
    answer_of,
    leaves,
    names_of,
    read_answers,
)
from agenteval.evaluators.utility.labels import fold
from agenteval.records import Criterion, slug

_MARKUP = r"[\s*_`\"]{0,8}"
_LEAD = rf"\s{{0,20}}(?:#{{1,6}}\s)?(?:[-*+•]\s)?{_MARKUP}(?:\d{{1,2}}[.)]\s)?{_MARKUP}"
LABELLED = re.compile(
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
_TAKEN_BACK = re.compile(
    r"\W*(?:[\d/]|(?:or|to|but|not?|nor|out of|actually|rather|if)\b)|.*\b(?:score|rating|grade)\b",
    re.I,
)
VERDICTS = frozenset(slug(key) for key in (*LABEL_KEYS, "final answer", "verdict", "final score"))
_REASONS = frozenset(
    map(
        slug,
        (
            *REASON_KEYS,
            "analysis",
            "feedback",
            "comment",
            "comments",
            "summary",
            "conclusion",
            "overall",
            "overall assessment",
        ),
    )
)
_NAMES = frozenset(map(slug, (*NAME_KEYS, "dimension", "aspect", "category")))
_MOST_LINES = 2000


def read_lines(text: str, criteria: Sequence[Criterion], *, whole: bool) -> Answers | None:
    """One Answer per leaf, or None when the text is not in the form.

    `whole` is False when the text may have been cut off: its last line then counts only with its
    end. With a single criterion `Score: ...` and the like name it too, and a text that is nothing
    but one of its values answers it.
    """
    asked = dict(leaf for c in criteria for leaf in leaves(c))
    names = names_of(list(asked.items()))
    only = next(iter(asked)) if len(asked) == 1 else None
    if only is not None:
        names = dict.fromkeys(VERDICTS, only) | names
        if whole and "\n" not in text.strip():
            answers = read_answers({only: text.strip()}, criteria)
            if isinstance(answers.by_path[only], Answer):
                return answers
    lines = text.split("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES:
        return None
    plain = "\n".join(_without_tables(lines if whole else lines[:-1], names))
    plain = _TAG.sub(lambda tag: _tag_as_line(tag, names), plain)
    entries = _entries(plain.split("\n"), names)
    rows: list[dict[str, str]] = []
    for path, *said in entries or ():
        labels = [label for text in said if (label := level_of(text, asked[path])) is not None]
        if not labels:  # names a criterion, and says something that is none of its values
            return None
        rows.extend({"criterion": path, "label": label} for label in labels)
    answers = read_answers(rows, criteria)
    complete = all(isinstance(answer, Answer) for answer in answers.by_path.values())
    return answers if rows and complete else None


def level_of(said: str, leaf: Criterion) -> str | None:
    """The part of a line behind `Name:` that is a level, with or without a reason behind it."""
    said = _OUT_OF.sub(r"\1", said.strip().rstrip(",").strip('*_`" \t'))
    if isinstance(answer_of(said, leaf), Answer):
        return said
    heads = [(said[: cut.start()], said[cut.end() :]) for cut in _BEHIND.finditer(said[:300])]
    for head, reason in reversed(heads[:5]):
        if isinstance(answer_of(head := head.strip('*_`" \t'), leaf), Answer):
            levels = [fold(level) for level in leaf.accepted_values if fold(level) != fold(head)]
            taken_back = _TAKEN_BACK.match(reason) or fold(reason).startswith(tuple(levels))
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
        entry = LABELLED.fullmatch(line)
        name, *said = (entry["name"], entry["said"].strip(' \t*_`"')) if entry else ("", "")
        if bracketed := _IN_BRACKETS.fullmatch(name):
            name, said = bracketed["name"], [*said, bracketed["said"]]
        said = list(filter(None, said))
        heading = None if said else _HEADING.fullmatch(line)
        title = name or (heading["name"] if heading else "")
        path = section if section and slug(name) in VERDICTS else names.get(slug(title))
        if path is not None and said:
            entries.append((path, *said))
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
        if not (line.strip().startswith("|") and line.strip().endswith("|")):
            columns = None
            yield line
            continue
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        if _RULE.fullmatch(following.strip()):
            columns = _columns(cells)
            if columns is None:
                yield line
        elif columns is None:
            yield line
        elif not _RULE.fullmatch(line.strip()) and max(columns) < len(cells):
            name, level = (cells[column] for column in columns)
            if slug(name.strip("*_` ")) in names:  # a row of totals is none of the criteria
                yield f"{name}: {level}"


def _columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """The columns of names and of levels, when the heads say so and only once."""
    heads = [slug(cell.split("(")[0].strip("*_` ")) for cell in cells]
    names = [i for i, head in enumerate(heads) if head in _NAMES]
    levels = [i for i, head in enumerate(heads) if head in VERDICTS]
    return (names[0], levels[0]) if len(names) == len(levels) == 1 else None


def _tag_as_line(tag: re.Match[str], names: dict[str, str]) -> str:
    name = tag["own"] or tag["tag"]
    if slug(name) not in {*names, *VERDICTS, *_REASONS}:
        return tag.group()
    said = (tag["said"] or "").strip()
    if "\n" in said and slug(name) not in _REASONS:  # lines, not one level
        return f"\n{name}:\n{said}\n"
    return f"\n{name}: {' '.join(said.split())}\n"
