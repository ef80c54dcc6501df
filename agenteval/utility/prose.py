"""Read the levels that a reply states in prose: lines, sections, lists, tables, tags, sentences.

labelled   a line `criterion: level`, a section, a row, a column or a tag for each criterion
prose      one criterion, and the only score that the text states

A line in prose may be a quotation, so lines are read only if the format is unambiguous: after the
first labelled line, the text may contain only labelled lines, reasons and decoration. An unreadable
line, or two contradicting lines, affect only their own criterion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.models.reply import declines
from agenteval.records import Criterion, slug
from agenteval.utility.answers import (
    LABEL_KEYS,
    NAME_KEYS,
    REASON_KEYS,
    TOP_KEYS,
    TWICE,
    Answers,
    LevelAnswer,
    NoAnswer,
    answer_of,
    leaves_of,
    names_of,
    path_of,
    read_answers,
)
from agenteval.utility.labels import NUMBER, fold, reply_words
from agenteval.utility.stated_scores import (
    SENTENCE_END,
    scales_in,
    stated_scores,
    top_of,
    without_scale,
)

_WORD = re.compile(r"[^\W_]+")
_MARKUP = r"[\s*_`\"]{0,8}"
_LEAD = rf"\s{{0,20}}(?:#{{1,6}}\s)?(?:[-*+•]\s)?{_MARKUP}(?:\d{{1,2}}[.)]\s)?{_MARKUP}"
_COLON = re.compile(
    rf"{_LEAD}(?P<name>[^\s*_`\":=：|#][^:=：|\n]{{0,100}}?){_MARKUP}[:=：](?!>)(?P<value>[^\n]{{0,4000}})"
)
_DASH = re.compile(
    rf"{_LEAD}(?P<name>[^\s*_`\":=：|#][^|\n]{{0,100}}?){_MARKUP}"
    rf"(?:\s[-–—]{{1,2}}\s|\s?(?:->|→|=>)\s?)(?P<value>[^\n]{{0,4000}})"
)
_HEADING = re.compile(
    r"\s{0,20}(?:#{1,6}\s|(?=\*\*|__|\d{1,2}[.)]\s|\[))[\s*_\[]{0,8}(?:\d{1,2}[.)]\s)?"
    r"(?P<name>[^\n*|#\]]{1,100}?)[\s*_#:\]]{0,8}"
)
_ITEM = re.compile(rf"{_LEAD}(?P<name>[^\s*_`\":=：|#][^:=：|\n]{{0,100}}?){_MARKUP}")
_UNDERLINE = re.compile(r"\s{0,3}(?:-{2,100}|={2,100})\s{0,9}")
# A line that ends with a colon and introduces levels that are not an answer.
_SHOWN = re.compile(
    r"\b(?:examples?|e\.g|for instance)\b|^\W*(?:\w{1,20} )?(?:format|template|schema|rubric)\W*$",
    re.I,
)
_HTML = frozenset(_WORD.findall("b i p br em ul ol li div span strong table tr td th code pre"))
_DECORATION = re.compile(r"[\s*_=#`~-]*|\s{0,20}#{1,6}\s[^\n]{0,200}|</?\w{1,20}>|```\w{0,20}")
_TAG = re.compile(
    r"<(?P<tag>[\w-]{1,60})(?P<attributes>(?:\s{1,9}[\w-]{1,20}=[\"'][^\"'<>]{1,100}[\"']){0,4})\s?"
    r"(?:/>|>(?:(?P<value>[^<>]{0,4000})</(?P=tag)>)?)"
)
_ATTRIBUTE = re.compile(r"([\w-]{1,20})=[\"']([^\"'<>]{1,100})[\"']")
_RULE = re.compile(r"\|?(?:\s{0,40}:?-{1,80}:?\s{0,40}\|)*\s{0,40}:?-{1,80}:?\s{0,40}\|?")
_IN_BRACKETS = re.compile(r"(?P<name>[^()]{1,80}?)\s?\((?P<value>[^()]{1,40})\)")
_BOXED = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]|\\boxed\{([^{}\n]{1,40})\}")
_TOKENS = re.compile(r"<\|\w{1,30}\|>")
_PARTS = re.compile(r"[，；]|(?<=\S)\s*[,;|]\s+|(?<=\w)[*_]{0,3}\.[*_]{0,3}\s+")
# Separators between a level and a reason on the same line.
_BEHIND = re.compile(r"\s[-–—]{1,2}\s|[.;:]\s|\s\(")
# A reason must not begin by revising the level or mention another score.
_LEVEL_TAKEN_BACK = re.compile(
    r"\W*(?:[\d/]|(?:or|to|but|not?|nor|out of|actually|rather|if|maybe|perhaps|almost)\b)"
    r"|.*\b(?:score|rating|grade)\b",
    re.I,
)
_NUMERAL = re.compile(NUMBER, re.I)
_NAMES = frozenset(map(slug, (*NAME_KEYS, "category")))
_REASONS = frozenset(map(slug, (*REASON_KEYS, "overall assessment", "strengths", "weaknesses")))
_VERDICTS = frozenset(_WORD.findall(" ".join((*LABEL_KEYS, *reply_words("prose")["verdicts"]))))
_FILLERS = frozenset(reply_words("prose")["fillers"])
_FOREIGN = ""  # the section of another criterion
_MOST_LINES = 2000
_MOST_CHARS = 100_000


def without_marks(text: str) -> str:
    """Return the text without special tokens and without boxes around a score: "Rating: [[5]]"."""
    return _BOXED.sub(lambda match: match[1] or match[2], _TOKENS.sub("", text))


def read_prose(
    text: str, criteria: Sequence[Criterion], *, whole: bool
) -> tuple[Answers, str] | None:
    """Return the answers in a text without JSON, and the rung; None if it states no level.

    If the text may have been cut off (`whole` is False), its last line counts only if it is
    terminated. With a single criterion, labels like `Score: ...` refer to it, and a text that
    consists of one of its values answers it.
    """
    reader = _ProseReader(criteria, text)
    if whole and reader.only is not None and "\n" not in text.strip():
        answers = read_answers({reader.only: text.strip()}, criteria)
        if answers.all_answered:
            return answers, "labelled"
    lines = text.split("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES:
        return None
    if (labelled := reader.read_lines(lines if whole else lines[:-1])) is not None:
        return labelled, "labelled"
    if reader.only is None or not whole or len(text) > _MOST_CHARS or declines(text):
        return None
    level = reader.stated_score()
    return None if level is None else (read_answers({reader.only: level}, criteria), "prose")


@dataclass(frozen=True)
class _Entry:
    """A line `Name: words`, its criterion, and the top of the scale that it mentions."""

    name: str = ""
    path: str | None = None
    words: Sequence[str] = ()
    top: float | None = None


@dataclass
class _Stated:
    """Statements of a text about one criterion: levels, and words that are not levels."""

    levels: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


class _ProseReader:
    def __init__(self, criteria: Sequence[Criterion], text: str) -> None:
        self.criteria = criteria
        self.leaves = dict(leaves_of(criteria))
        self.names = names_of(list(self.leaves.items()))
        self.only = next(iter(self.leaves)) if len(self.leaves) == 1 else None
        self.tops = scales_in(text)
        self.relevant_lines: list[str] = []  # no quotations, no lines about other criteria

    # ------------------------------------------------------------ names

    def is_about_this(self, name: str) -> bool:
        """Whether words only name the single criterion, the answer or the score."""
        title = f"{self.only} {self.leaves[self.only].name}" if self.only else ""
        allowed = _VERDICTS | _FILLERS | set(_WORD.findall(title.casefold()))
        return all(w in allowed or w.isdigit() for w in _WORD.findall(name.casefold()))

    def path(self, name: str, section: str | None = None) -> str | None:
        """Return the criterion for a name, which may depend on the section; None if unknown."""
        path = path_of(name, self.names)
        if path is not None:
            return path
        words = set(_WORD.findall(name.casefold()))
        if not words & _VERDICTS or not self.is_about_this(name):
            return None
        return self.only if section is None else section or None

    # ------------------------------------------------------------ lines

    def read_lines(self, lines: Sequence[str]) -> Answers | None:
        """Read answers in common formats: lines `Clarity: fair`, sections, tables, tags.

        None if the text has none of these formats. A section is a heading with a criterion's name
        followed by a line `Score: 4`; there may be prose between them and after `Explanation:`.
        If all lines are set off (in bold, as list items), each of them may be followed by prose,
        but only if all are.
        """
        unquoted = [line for line in lines if not line.lstrip().startswith(">")]
        plain = "\n".join(self.without_tables(unquoted))
        plain = _TAG.sub(self.tag_as_lines, plain)
        lines = [part for line in plain.split("\n") for part in self.parts_of(line)]
        entries = self.entries(lines)
        answers = read_answers({}, self.criteria)
        for path, entry in (entries or {}).items():
            leaf = self.leaves[path]
            read = [answer_of(level, leaf) for level in entry.levels]
            different = {answer for answer in read if isinstance(answer, LevelAnswer)}
            in_doubt = [words for words in entry.unread if words.count(" ") < 5]
            if len(different) > 2:  # a rubric that lists the levels
                return None
            if len(different) > 1:
                answers.by_path[path] = TWICE
            elif read and not in_doubt:
                answers.by_path[path] = read[0]
            elif entry.unread:
                shown = repr((in_doubt or entry.unread)[0])[:80]
                answers.by_path[path] = NoAnswer("unscored:off_scale", f"{shown} is not a level")
        readable = any(isinstance(answer, LevelAnswer) for answer in answers.by_path.values())
        return answers if readable else None

    def parts_of(self, line: str) -> list[str]:
        """Split a line that answers several criteria: "Clarity: 4, Depth: 8"."""
        if re.search(r'["{}＂｛｝]', line):  # broken JSON
            return [line]
        starts = [0, *(cut.end() for cut in _PARTS.finditer(line[:1000]))][:50]
        part_starts: dict[int, int] = {}  # start of the name: start of the part
        for start in starts:
            entry = _COLON.match(line, start) or _DASH.match(line, start)
            name = _plain(entry["name"]) if entry else ""
            reason = bool(part_starts) and slug(name) in _REASONS
            if entry and (path_of(name, self.names) or reason or (not start and self.path(name))):
                part_starts.setdefault(entry.start("name"), start)
        if len(part_starts) < 2 or 0 not in part_starts.values():
            return [line]
        begins = list(part_starts.values())
        ends = [*begins[1:], len(line)]
        return [line[a:b].rstrip(" ,;|，；") for a, b in zip(begins, ends, strict=True)]

    def entries(self, lines: Sequence[str]) -> dict[str, _Stated] | None:
        """Return the levels by criterion; None if there is other text between the lines.

        Parentheses after a name may contain the level ("Clarity (4/5): ...") or the scale.
        """
        entries: dict[str, _Stated] = {}
        explained: list[bool] = []  # for each entry: whether prose follows it
        section: str | None = None  # the criterion of the current heading
        sections = prose = contested = False  # `prose`: allowed here
        marked = True  # every entry is set off as a heading, in bold or as an item of a list
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if line.rstrip().endswith(":") and _SHOWN.search(SENTENCE_END.split(line.strip())[-1]):
                return None
            entry = self.entry(line, section)
            title = self.title(line, following, entry)
            path, words = entry.path, entry.words if title is None else ()
            if title is not None:
                path = path_of(_plain(title), self.names)
            relevant = section != _FOREIGN
            if path is not None and words:
                levels = [self.level_of(text, path, entry.top) for text in words]
                stated = entries.setdefault(path, _Stated())
                stated.levels += filter(None, levels)
                stated.unread += [] if any(levels) else words[:1]
                explained.append(False)
                in_section = section is not None
                marked = marked and (in_section or line.lstrip()[:1] in "#*_-+•0123456789")
                prose = False
            elif path is not None:
                section, sections, prose = path, True, True
            elif slug(entry.name) in _REASONS:
                prose = section is not None
                explained[-1:] = [True] * bool(entries)
            elif title and (sections or self.only):
                section = None if self.is_about_this(title) else _FOREIGN
                prose = sections or prose
                relevant = section != _FOREIGN
            elif entries and not prose and not _decorates(line) and (relevant or not words):
                contested = True
                explained[-1:] = [True]
            label = re.split(r"[.!?]\s", entry.name)[-1]  # "Two gaps. Score: 4"
            if relevant and (
                path or not words or label.count(" ") > 3 or self.is_about_this(label)
            ):
                self.relevant_lines.append(line)
        each_explained = marked and len(explained) > 1 and all(explained)
        return None if contested and not each_explained else entries

    def title(self, line: str, following: str, entry: _Entry) -> str | None:
        """Return the title if the line is a heading, else None."""
        if slug(entry.name) in _NAMES and entry.words:  # "Criterion: Clarity"
            return entry.words[0]
        if entry.words or entry.name:
            return None if entry.words else entry.name
        above = _indent(following) > _indent(line) or _UNDERLINE.fullmatch(following)
        heading = (_ITEM if above else _HEADING).fullmatch(line)
        return heading["name"] if heading else None

    def entry(self, line: str, section: str | None) -> _Entry:
        """Parse a line `Name: words`."""
        first = _Entry()
        for pattern in (_COLON, _DASH):
            match = pattern.fullmatch(line)
            if match is None:
                continue
            name, top = without_scale(match["name"])
            bracketed, name = _IN_BRACKETS.fullmatch(name), _plain(name)
            value, path = match["value"].strip(' \t*_`"'), self.path(name, section)
            inner = _COLON.fullmatch(value) if path else None
            if inner and self.path(inner["name"], path) == path:  # "Quality: Score: 4"
                value = inner["value"].strip(' \t*_`"')
            words = [text for text in (value, bracketed and bracketed["value"]) if text]
            if path is not None or (pattern is _COLON and slug(name) in {*_REASONS, *_NAMES}):
                return _Entry(name, path, words, top)
            first = first if first.name or pattern is _DASH else _Entry(name, None, words, top)
        return first

    def level_of(self, words: str, path: str, top: float | None = None) -> str | None:
        """Return the level at the start; a reason may follow: "fair - two gaps"."""
        leaf = self.leaves[path]
        words, stated = without_scale(words.strip().rstrip(",").strip('*_`" \t'))
        if stated is None and (note := re.search(r"\((out of [^()]{1,20})\)", words, re.I)):
            words = words.replace(note[0], note[1])
        scale = stated or top
        tops = self.tops if scale is None else {scale}
        if self.is_level(words, leaf, tops):
            return words
        heads = [
            (words[: cut.start()], words[cut.end() :]) for cut in _BEHIND.finditer(words[:300])
        ]
        for head, reason in reversed(heads[:5]):
            head = head.strip('*_`" \t')
            if not self.is_level(head, leaf, tops):
                continue
            other_levels = [level for level in leaf.accepted_values if fold(level) != fold(head)]
            answers = [answer_of(reason, leaf), answer_of(head, leaf)]
            labels = {answer.label for answer in answers if isinstance(answer, LevelAnswer)}
            taken_back = _LEVEL_TAKEN_BACK.match(reason)
            begins = fold(reason).startswith(tuple(map(fold, other_levels)))
            return None if taken_back or begins or len(labels) > 1 else head
        return None

    def is_level(self, words: str, leaf: Criterion, tops: set[float]) -> bool:
        """Whether words are a level; a number must be on the criterion's scale."""
        if not isinstance(answer_of(words, leaf), LevelAnswer):
            return False
        return not tops or not _NUMERAL.fullmatch(fold(words)) or top_of(leaf) in tops

    # ------------------------------------------------------------ tables and tags

    def without_tables(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield the lines, with table cells that are levels converted to `name: level`."""
        heads: list[str] = []  # of the table that the line belongs to
        sign = "|"
        for line, following in zip(lines, [*lines[1:], ""], strict=False):
            row = line.strip()
            if not heads and "|" not in row and row.count(",") and self.columns(row.split(",")):
                heads, sign = row.split(","), ","
                continue
            if sign not in row:
                heads, sign = [], "|"
            cells = [cell.strip(" *_`") for cell in row.strip("|").split(sign)]
            starts = sign == "|" and sign in row and "|" in following
            starts = starts and _RULE.fullmatch(following.strip()) is not None
            if starts:
                heads = cells if self.columns(cells) else []
            if not heads:
                yield line
            elif not starts and not _RULE.fullmatch(row):
                yield from self.row_as_lines(heads, cells)

    def columns(self, heads: Sequence[str]) -> list[tuple[int, int]]:
        """Return (column of names, column of levels) pairs; -1 if the heads are the names."""
        plain = [_plain(head) for head in heads]
        names = [i for i, head in enumerate(plain) if slug(head) in _NAMES]
        levels = [i for i, head in enumerate(plain) if head.casefold() in _VERDICTS]
        if len(names) == len(levels) == 1:
            return [(names[0], levels[0])]
        rubric = any(head.casefold() in ("meaning", "description", "definition") for head in plain)
        if names or levels or rubric:
            return []
        return [(-1, i) for i, head in enumerate(plain) if head and path_of(head, self.names)]

    def row_as_lines(self, heads: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
        for column, level in self.columns(heads):
            if level >= len(cells) or (column < 0 and slug(cells[0]) in _REASONS):
                continue
            name = _plain(heads[level] if column < 0 else cells[column])
            top = without_scale(heads[level])[1]
            if path_of(name, self.names):  # a row of totals is not a criterion
                yield f"{name}{f' (out of {top:g})' if top else ''}: {cells[level].strip()}"

    def tag_as_lines(self, tag: re.Match[str]) -> str:
        attributes = {key.lower(): value for key, value in _ATTRIBUTE.findall(tag["attributes"])}
        name = next((attributes[key] for key in NAME_KEYS if key in attributes), tag["tag"])
        label = next((attributes[key] for key in LABEL_KEYS if key in attributes), None)
        expected = slug(name) in _VERDICTS | _REASONS | _NAMES or path_of(name, self.names)
        if not expected and not (set(_WORD.findall(name)) & _VERDICTS and self.is_about_this(name)):
            before = tag.string[max(0, tag.start() - 20) : tag.start()].rstrip(" \t")
            opens = not before or before.endswith(("\n", ">"))
            foreign = self.only and opens and tag["tag"].lower() not in _HTML
            return f"\n{name}:\n{tag['value'] or ''}" if foreign else tag.group()
        top = next((attributes[key] for key in TOP_KEYS if key in attributes), None)
        content = (label or tag["value"] or "").strip()
        if "\n" in content and slug(name) not in _REASONS:  # lines, not one level
            return f"\n{name}:\n{content}\n"
        scale = f" (out of {top})" if top else ""
        return f"\n{name}{scale}: {' '.join(content.split())}\n"

    # ------------------------------------------------------------ a score in running prose

    def stated_score(self) -> str | None:
        """Return the level stated for the only criterion; None if there is none or more than one.

        It must be literal (`Score: 4/5`, "I would rate it 4 out of 5", `[RESULT] 4`), in the last
        sentence or as the whole first line, and all other stated levels must be the same.
        """
        path = self.only or ""
        leaf = self.leaves[path]
        text = "\n".join(self.relevant_lines)
        # a score on the line below its label
        text = re.sub(r":([ \t*_]{0,8})\n\s{0,20}", r":\1 ", text.strip())
        sentences = [s for s in SENTENCE_END.split(text) if any(map(str.isalnum, s))]
        stated = [self.stated(" ".join(s.casefold().split()), leaf) for s in sentences]
        lines = []  # the level of each line `Score: 4`; quoted levels count, too
        for line in text.split("\n"):
            entry = self.entry(line, None)
            has_level = entry.path and entry.words
            level = self.level_of(entry.words[0], path, entry.top) if has_level else None
            lines.append(_label(level or "", leaf))
        labels = {level for levels in stated for level in levels} | set(filter(None, lines))
        if not stated or len(labels) != 1 or not (lines[0] or len(stated[-1]) == 1):
            return None
        return labels.pop() or None  # "": on another scale, or of another criterion

    def stated(self, sentence: str, leaf: Criterion) -> list[str]:
        """Return the level of each score in a sentence, "" for a score on another scale or of
        another criterion."""
        levels = []
        for score in stated_scores(sentence, leaf.accepted_values):
            tops = self.tops if score.top is None else {score.top}
            fits = self.is_level(score.level, leaf, tops)
            fits = fits and all(map(self.is_about_this, score.subjects))
            levels.append(_label(score.level, leaf) if fits else "")
        return levels


def _decorates(line: str) -> bool:
    return len(line) <= 200 and _DECORATION.fullmatch(line.strip()) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else 0


def _plain(name: str) -> str:
    """Return a name without its scale and parentheses."""
    name = without_scale(name.strip())[0]
    bracketed = _IN_BRACKETS.fullmatch(name)
    return bracketed["name"] if bracketed else name


def _label(words: str, leaf: Criterion) -> str:
    answer = answer_of(words, leaf)
    return (answer.label or "") if isinstance(answer, LevelAnswer) else ""
