"""Rules that combine the answers of a panel's members, and the choice of a rule by labels."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agenteval.errors import InputError
from agenteval.records import Criterion, Score
from agenteval.utility.answers import LevelAnswer, NoAnswer

OPTION = "--panel-rule"
AUTO, MEAN, MAJORITY, VETO, REGRESSION = "auto", "mean", "majority", "veto", "regression"
_NOT_APPLICABLE = "not applicable"
_FOLDS = 5
_RIDGE = 1.0  # strength of the pull toward the mean's weights, in cases


@dataclass(frozen=True)
class PanelRule:
    """How a panel decides on one criterion of one run.

    - `mean`: the mean of the members' values.
    - `majority`: the most common level. Of tied levels the one nearest to the mean counts, then the
      worse one.
    - `veto:K`: the lowest level if at least K members give it, otherwise the majority. Judges tend
      to agree with what they see: they recognize more than 96% of good answers and less than 25% of
      bad ones, so a minority that objects is often right (arXiv 2510.11822).
    - `regression`: a weighted sum of the members' values, fitted to labels, as the nearest level.
      `weights` holds the constant and a weight for each member by criterion id.
    """

    name: str
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, members: int) -> PanelRule:
        """Return the rule of this name; `veto` is `veto:1`. Raises InputError."""
        name, colon, count = text.partition(":")
        if name == VETO:
            votes = int(count) if count.isdecimal() else 0 if colon else 1
            if not 1 <= votes <= members:
                raise InputError(f"veto:K needs a number K from 1 to {members}: {text!r}", OPTION)
            return cls(f"{VETO}:{votes}")
        if colon or name not in (AUTO, MEAN, MAJORITY, REGRESSION):
            rules = ", ".join((MEAN, MAJORITY, f"{VETO}[:K]", REGRESSION, AUTO))
            raise InputError(f"there is no rule {text!r}; available: {rules}", OPTION)
        return cls(name)

    @property
    def needs_labels(self) -> bool:
        """Whether the rule depends on labels."""
        return self.name == AUTO or (self.name == REGRESSION and not self.weights)

    def problem(self, criterion: Criterion) -> str | None:
        """Return why the rule cannot be used on a criterion, or None."""
        if criterion.judge:
            return None
        if self.name != MAJORITY and not criterion.ordered:
            return f"criterion {criterion.id} has no order: use {OPTION} {MAJORITY}"
        if self.name.startswith((MAJORITY, VETO)) and not has_levels(criterion):
            return f"criterion {criterion.id} has no levels: use {OPTION} {MEAN}"
        return None

    def combine(self, criterion: Criterion, votes: Mapping[str, Score]) -> LevelAnswer | NoAnswer:
        """Return the panel's answer from the score of each member, by name."""
        if criterion.judge or self.name == MAJORITY:
            return _majority(criterion, votes)
        if self.name.startswith(VETO):
            objections = sum(
                _answer(criterion, v) == criterion.accepted_values[0] for v in votes.values()
            )
            if objections >= int(self.name.partition(":")[2]):
                return _level(criterion, criterion.accepted_values[0])
            return _majority(criterion, votes)
        values = {name: vote.value for name, vote in votes.items()}
        without = [name for name, value in values.items() if value is None]
        if len(without) == len(values):
            return LevelAnswer(None, None, "exact", not_applicable=True)
        if without:
            return NoAnswer("unscored:missing", f"{', '.join(without)}: not applicable")
        numbers = np.array([value for value in values.values() if value is not None])
        if self.name == MEAN:
            return LevelAnswer(None, float(numbers.mean()), "exact")
        constant, *weights = self.weights[criterion.id]
        value = float(np.clip(constant + numbers @ np.array(weights), 0, 1))
        if not has_levels(criterion):
            return LevelAnswer(None, value, "exact")
        top = len(criterion.accepted_values) - 1
        return _level(criterion, criterion.accepted_values[round(value * top)])


def has_levels(criterion: Criterion) -> bool:
    """Whether judges answer with a level of this criterion."""
    return bool(criterion.accepted_values) and not criterion.sub_criteria


def level_of(criterion: Criterion, label: str | None, value: float | None) -> str | None:
    """Return the label, or the level with exactly this value, or None."""
    if label is not None or value is None or not has_levels(criterion) or not criterion.ordered:
        return label
    levels = ((level, criterion.value_of(level)) for level in criterion.accepted_values)
    return next((level for level, v in levels if v is not None and abs(v - value) < 1e-9), None)


def _answer(criterion: Criterion, vote: Score) -> str | None:
    if vote.status == "not_applicable":
        return _NOT_APPLICABLE
    return level_of(criterion, vote.label, vote.value)


def _level(criterion: Criterion, label: str) -> LevelAnswer:
    return LevelAnswer(label, criterion.value_of(label), "exact")


def _majority(criterion: Criterion, votes: Mapping[str, Score]) -> LevelAnswer | NoAnswer:
    answers = {name: _answer(criterion, vote) for name, vote in votes.items()}
    for name, answer in answers.items():
        if answer is None:
            return NoAnswer("unscored:off_scale", f"{name}: {votes[name].value} is not a level")
    counts = Counter(answer for answer in answers.values() if answer is not None)
    most = max(counts.values())
    tied = [answer for answer, count in counts.items() if count == most]
    if len(tied) > 1 and (not criterion.ordered or _NOT_APPLICABLE in tied):
        listed = ", ".join(f"{name}: {answer}" for name, answer in answers.items())
        return NoAnswer("unscored:missing", f"tie of the members ({listed})")
    if tied == [_NOT_APPLICABLE]:
        return LevelAnswer(None, None, "exact", not_applicable=True)
    rank = criterion.accepted_values.index
    ranks = [rank(a) for a in answers.values() if a is not None and a != _NOT_APPLICABLE]
    mean = sum(ranks) / len(ranks)
    return _level(criterion, min(tied, key=lambda a: (round(abs(rank(a) - mean), 9), rank(a))))


# -- fitted to labels ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledCell:
    """A cell that people labelled: the score of each member by name, and what people say."""

    criterion: Criterion
    case: str
    votes: Mapping[str, Score]
    label: str | None
    value: float | None

    def error(self, answer: LevelAnswer | NoAnswer) -> float | None:
        """Return |answer - label| as a share of the scale, 0 or 1 for levels without an order, None
        if there is no answer."""
        if isinstance(answer, NoAnswer) or answer.not_applicable:
            return None
        if answer.value is not None and self.value is not None:
            return abs(answer.value - self.value)
        return float(answer.label != self.label)

    def without(self, member: str) -> LabelledCell:
        """Return the cell without a member."""
        votes = {name: vote for name, vote in self.votes.items() if name != member}
        return LabelledCell(self.criterion, self.case, votes, self.label, self.value)


@dataclass(frozen=True)
class ChosenRule:
    """A rule that labels decided: chosen on the cells `fitted`, to be reported on `held_out`.

    `errors` is the mean error of each candidate on `fitted`, the regression's by cross-fitting.
    """

    rule: PanelRule
    errors: Mapping[str, float]
    fitted: tuple[LabelledCell, ...]
    held_out: tuple[LabelledCell, ...]


def choose_rule(
    rule: PanelRule, criteria: Sequence[Criterion], cells: Sequence[LabelledCell], seed: int
) -> ChosenRule:
    """Return the rule fitted to labels; with `auto` the candidate with the least mean error.

    A half of the labelled cases, drawn by seed, decides; the other half is held out. Of equal
    candidates the simplest is chosen. Raises InputError where a half has no case, and for a
    regression on a criterion without labels.
    """
    cases = sorted({cell.case for cell in cells})
    if len(cases) < 2:
        raise InputError(
            f"the labels have {len(cases)} usable cases: one half chooses the rule, the other half "
            "checks it",
            "--labels",
        )
    random.Random(seed).shuffle(cases)  # noqa: S311  not a secret
    first = set(cases[: (len(cases) + 1) // 2])
    fitted = tuple(cell for cell in cells if cell.case in first)
    held_out = tuple(cell for cell in cells if cell.case not in first)
    judged = [c for c in criteria if not c.judge]
    labelled = {cell.criterion.id for cell in fitted}
    missing = [c.id for c in judged if c.id not in labelled]
    members = len(cells[0].votes)
    names = [rule.name]
    if rule.name == AUTO:
        vetoes = [f"{VETO}:{k}" for k in range(1, max(2, (members + 1) // 2))]
        candidates = [MAJORITY, MEAN, *vetoes, *([] if missing else [REGRESSION])]
        names = [n for n in candidates if not any(PanelRule(n).problem(c) for c in judged)]
        if not names:
            raise InputError("no rule fits all criteria: judge them in two commands", OPTION)
    if REGRESSION in names and missing:
        raise InputError(
            f"the half of the labels that fits the regression has none of {missing[0]}",
            "--labels",
        )
    errors = {name: _crossed(PanelRule(name), fitted) for name in names}
    best = min(names, key=lambda name: (round(errors[name], 9), names.index(name)))
    return ChosenRule(fit(PanelRule(best), fitted), errors, fitted, held_out)


def _crossed(rule: PanelRule, cells: Sequence[LabelledCell]) -> float:
    """Return the mean error; a regression is fitted without the fifth of the cases it rates."""
    if rule.name != REGRESSION:
        return mean_error(rule, cells)
    cases = list(dict.fromkeys(cell.case for cell in cells))
    folds = {case: number % _FOLDS for number, case in enumerate(cases)}
    errors: list[float | None] = []
    for fold in range(min(_FOLDS, len(cases))):
        training = [cell for cell in cells if folds[cell.case] != fold]
        fitted = fit(rule, training, {cell.criterion.id for cell in cells})
        errors += errors_of(fitted, [cell for cell in cells if folds[cell.case] == fold])
    return _mean(errors)


def errors_of(rule: PanelRule, cells: Iterable[LabelledCell]) -> list[float | None]:
    """Return the error on each cell; None where the panel has no answer."""
    return [cell.error(rule.combine(cell.criterion, cell.votes)) for cell in cells]


def mean_error(rule: PanelRule, cells: Sequence[LabelledCell]) -> float:
    """Return the mean error on the cells that the rule answers; 1 if it answers none."""
    return _mean(errors_of(rule, cells))


def _mean(errors: Iterable[float | None]) -> float:
    answered = [error for error in errors if error is not None]
    return float(np.mean(answered)) if answered else 1.0


def fit(rule: PanelRule, cells: Sequence[LabelledCell], criteria: Iterable[str] = ()) -> PanelRule:
    """Return a regression with weights for each criterion of the cells, any other rule unchanged.

    Ridge regression toward the mean of the members: minimizes the squared error, each case with
    weight 1, plus the squared distance of the constant from 0 and of the weights from 1 / members.
    `criteria` (ids) get weights also without a cell: those of the mean.
    """
    if rule.name != REGRESSION:
        return rule
    by_criterion: dict[str, list[LabelledCell]] = {name: [] for name in criteria}
    for cell in cells:
        by_criterion.setdefault(cell.criterion.id, []).append(cell)
    members = len(cells[0].votes) if cells else 0
    return PanelRule(
        REGRESSION, {name: _ridge(part, members) for name, part in by_criterion.items()}
    )


def _ridge(cells: Sequence[LabelledCell], members: int) -> tuple[float, ...]:
    prior = np.array([0.0, *[1 / members] * members])
    rows, labels, cases = [], [], []
    for cell in cells:
        values = [vote.value for vote in cell.votes.values()]
        if cell.value is not None and None not in values:
            rows.append([1.0, *(value for value in values if value is not None)])
            labels.append(cell.value)
            cases.append(cell.case)
    if not rows:
        return tuple(float(weight) for weight in prior)
    counts = Counter(cases)
    weight = np.array([1 / counts[case] for case in cases])
    design, target = np.array(rows), np.array(labels)
    inner = (design * weight[:, None]).T @ design + _RIDGE * np.eye(members + 1)
    solved = np.linalg.solve(inner, (design * weight[:, None]).T @ target + _RIDGE * prior)
    return tuple(round(float(weight), 6) for weight in solved)
