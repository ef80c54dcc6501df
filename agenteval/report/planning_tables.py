"""The tables of a planning campaign: one form for the page, one of plain text for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agenteval.evaluators.planning import tallies
from agenteval.evaluators.planning.capability import THRESHOLD, Bound, bounds
from agenteval.evaluators.planning.contrasts import (
    EXAMPLES,
    Contrast,
    PairedSystems,
    by_form,
    paired,
)
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.run import Attempt
from agenteval.evaluators.planning.tallies import Cause, Shares, Tally
from agenteval.report.grid import (
    Cell,
    Grid,
    Head,
    count,
    difference,
    mean,
    number,
    p_value,
    words,
)
from agenteval.report.planning_material import Campaign, campaign
from agenteval.report.sheet import PlainTable, Sheet, plain_table
from agenteval.report.text import shown
from agenteval.stats import Interval, PassK

_WITHOUT = Head("no verdict", "the endpoint or adapter failed: in no rate", True)
_RATE = Head("success [95 %]", "share of right plans among trials with a verdict", True)
_GUESS = Head("random orders", "share of right plans among random orders of all tools", True)
_TRIALS = Head("trials / cases", "trials with a verdict, and the cases they are of", True)


def planning_tables(
    attempts: Iterable[Attempt],
    causes: Iterable[Cause] = (),
    lexicon: Lexicon | None = None,
    *,
    brief: bool = False,
    threshold: float | None = None,
) -> list[PlainTable]:
    """All tables as plain text for a terminal, in the order of the page.

    `brief` leaves out those by what else the cases differ in than their actions.
    `threshold` is that of the capability bound, 20 % if None.
    `causes` are (case id, system, label). `lexicon`: words of the suite where they are not the
    built-in ones. Texts from outside are cleared of control characters, but not of the markup of
    whoever prints them.
    """
    found = sheets(campaign(attempts, causes, lexicon), brief=brief, threshold=threshold)
    return [plain_table(sheet) for sheet in found]


def sheets(own: Campaign, *, brief: bool = False, threshold: float | None = None) -> list[Sheet]:
    """All tables that the campaign has something for; see `planning_tables` for the options."""
    attempts = own.attempts
    least = THRESHOLD if threshold is None else threshold
    by_actions = tallies.tallies(attempts, tallies.actions)
    made = [
        _systems(tallies.tallies(attempts), bounds(by_actions, least), least),
        _paired(paired(attempts)),
        _groups("actions", by_actions, always=True),
        *([] if brief else _finer(own)),
        _errors(own),
        _causes(own),
        _passes(attempts),
        _effort(attempts),
    ]
    return [sheet for sheet in made if sheet is not None]


def _finer(own: Campaign) -> list[Sheet | None]:
    """By what else the cases differ in."""
    attempts = own.attempts
    return [
        _groups("constraints", tallies.tallies(attempts, tallies.constraints)),
        _groups("sub-sentences", tallies.tallies(attempts, tallies.sub_sentences)),
        _groups("words", tallies.tallies(attempts, tallies.word_bins(attempts))),
        _groups("topic", tallies.tallies(attempts, tallies.topic)),
        _forms(own),
    ]


def _systems(rates: Sequence[Tally], found: Sequence[Bound], threshold: float) -> Sheet:
    heads = (Head("system"), _RATE, Head("right", "", True), _TRIALS, _WITHOUT, _GUESS,
             Head("capability bound",
                  f"most actions with a success of {100 * threshold:g} % or more"))  # fmt: skip
    said = {b.system: b.sentence for b in found}
    rows = [
        (words(t.system), mean(t.rate), count(t.passes), *_counted(t),
         words(said.get(t.system, "no verdict")))
        for t in rates
    ]  # fmt: skip
    note = "Intervals are Wilson's, over cases: repeated trials of a case do not add to their n."
    return Sheet(Grid("systems", "Success by system", heads, tuple(rows)), note)


def _counted(t: Tally) -> tuple[Cell, Cell, Cell]:
    """Trials and cases, trials without a verdict, the level of guessing."""
    return _sizes(t.rate), count(t.failures), number(t.guess)


def _sizes(rate: Interval) -> Cell:
    text = f"{rate.n:,} / {rate.n_clusters or 0:,}"
    return Cell(text, float(rate.n), True, "" if rate.n else "zero")


def _groups(name: str, found: Sequence[Tally], *, always: bool = False) -> Sheet | None:
    """Success by groups of cases; None where all cases are of one group."""
    if not found or (len({t.group for t in found}) < 2 and not always):
        return None
    heads = (Head(name), Head("system"), _RATE, _TRIALS, _WITHOUT, _GUESS)
    ordered = sorted(found, key=lambda t: (t.place, t.group))  # systems keep their order
    rows = [(words(t.group), words(t.system), mean(t.rate), *_counted(t)) for t in ordered]
    caption = f"Success by {'number of ' if name != 'topic' else ''}{name}"
    return Sheet(Grid(f"by-{name}", caption, heads, tuple(rows)))


def _paired(found: Sequence[PairedSystems]) -> Sheet | None:
    if not found:
        return None
    heads = (Head("first"), Head("second"), Head("first less second [95 %]", "", True),
             Head("only first right", "", True), Head("only second right", "", True),
             Head("cases", "with a verdict on both", True),
             Head("left out", "cases with a verdict on one only", True),
             Head("p", "", True), Head("p corrected", "Holm, over all pairs", True),
             Head("test"))  # fmt: skip
    rows = [
        (words(p.first), words(p.second), difference(p.difference), count(p.only_first),
         count(p.only_second), count(p.cases), count(p.left_out), p_value(p.p), p_value(p.p_holm),
         words(p.method + (f"; {p.reason}" if p.reason else "")))
        for p in found
    ]  # fmt: skip
    return Sheet(Grid("pairs", "Two systems on the same cases", heads, tuple(rows)))


def _forms(own: Campaign) -> Sheet | None:
    found = by_form(own.attempts, own.lexicon)
    shown_ones = sorted(found.contrasts, key=lambda c: c.form)  # systems keep their order
    if not shown_ones:
        return None
    heads = (Head("clause form"), Head("for instance"), Head("system"),
             Head("with it", "", True), Head("without", "", True),
             Head("difference [95 %]", "", True),
             Head("within equal n [95 %]", "difference within equal numbers of actions", True),
             Head("trials with : without", "", True), _WITHOUT)  # fmt: skip
    note = (
        "Not causal: a case holds several forms, and longer ones hold more. The last difference "
        "compares cases of equal numbers of actions. Intervals are of 95 % each, not corrected "
        f"for the number of rows ({len(shown_ones)})."
    )
    if found.unread:
        note += f" {found.unread:,} trials are of texts outside of the language: left out here."
    rows = tuple(_form_row(c) for c in shown_ones)
    return Sheet(Grid("by-form", "Success by clause form", heads, rows), note)


def _form_row(c: Contrast) -> tuple[Cell, ...]:
    yes, no = c.holding, c.others
    return (
        words(c.form), words(EXAMPLES.get(c.form, "")), words(c.system),
        number(yes.rate.mean), number(no.rate.mean), difference(c.difference),
        difference(c.within), Cell(f"{yes.rate.n:,} : {no.rate.n:,}", float(yes.rate.n), True),
        count(yes.failures + no.failures),
    )  # fmt: skip


def _errors(own: Campaign) -> Sheet | None:
    rows = tallies.errors(own.attempts)
    if not rows:
        return None
    gone = {t.system: t.failures for t in tallies.tallies(own.attempts)}
    return _shares(
        ("errors", "Types of errors, as shares of a system's errors", "errors"),
        rows,
        (_WITHOUT, lambda system: count(gone[system])),
    )


def _causes(own: Campaign) -> Sheet | None:
    rows = tallies.causes(own.causes)
    if not rows:
        return None
    return _shares(("causes", "Causes, as shares of a system's dissected cases", "dissected"), rows)


def _shares(
    names: tuple[str, str, str],
    rows: Sequence[Shares],
    more: tuple[Head, Callable[[str], Cell]] | None = None,
) -> Sheet:
    """A row for each system. `names`: id, caption, what is counted; `more`: a last column."""
    labels = [p.label for p in rows[0].parts]
    heads = [Head("system"), Head(names[2], "", True)]
    heads += [Head(shown(label.replace("_", " ")), "", True) for label in labels]
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        last = (more[1](row.system),) if more else ()
        cells.append((words(row.system), count(row.total), *map(_part, row.parts), *last))
    if more:
        heads.append(more[0])
    note = "Exclusive: rows add up to 100 %; brackets hold 95 % intervals."
    return Sheet(Grid(names[0], names[1], tuple(heads), tuple(cells)), note)


def _part(part: tallies.Part) -> Cell:
    """The share with its interval; its count stands first."""
    share = part.share
    if share.mean is None:
        return Cell("–", None, True, "none", share.reason or "")
    text = f"{part.count:,}: {100 * share.mean:.1f} %"
    if share.low is not None and share.high is not None:
        text += f" [{100 * share.low:.1f}, {100 * share.high:.1f}]"
    return Cell(text, share.mean, True, "" if part.count else "zero", share.reason or "")


def _passes(attempts: Sequence[Attempt]) -> Sheet | None:
    rows = tallies.pass_rows(attempts)
    if not rows:
        return None
    heads = (Head("system"), Head("k", "", True), Head("all k right, pass^k [95 %]", "", True),
             Head("one of k right, pass@k [95 %]", "", True),
             Head("cases", "with k trials or more", True),
             Head("left out", "cases with fewer than k trials with a verdict", True))  # fmt: skip

    def one(row: tallies.PassRow, found: PassK) -> Cell:
        return replace(mean(found.rate), note=found.rate.method)

    cells = tuple(
        (words(r.system), count(r.k), one(r, r.hat), one(r, r.at), count(r.hat.rate.n),
         count(r.hat.left_out))
        for r in rows
    )  # fmt: skip
    return Sheet(Grid("passes", "Repeated trials", heads, cells))


def _effort(attempts: Sequence[Attempt]) -> Sheet:
    heads = (Head("system"), Head("seconds", "mean per trial", True),
             Head("turns", "mean per trial", True),
             Head("plans", "attempts at a plan: 1 + restarts; mean per trial", True),
             Head("tokens", "mean per trial, where the endpoint states them", True),
             Head("stated for", "trials whose tokens are known", True),
             Head("requests", "in all", True), Head("seconds in all", "", True),
             Head("cost in all", "in the currency of the prices given", True))  # fmt: skip
    rows = [
        (words(e.system), number(e.seconds, ".1f"), number(e.turns, ".1f"), number(e.plans),
         number(e.tokens, ",.0f"), Cell(f"{e.told:,} of {e.trials:,}", float(e.told), True),
         count(e.usage.requests), number(e.total_seconds, ",.1f"),
         number(e.usage.cost, ",.4f"))
        for e in tallies.effort(attempts)
    ]  # fmt: skip
    note = "Means are over trials with a log; sums are over all trials."
    return Sheet(Grid("effort", "What the trials took", heads, tuple(rows)), note)
