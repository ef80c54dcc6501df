"""Do the words of sessions and of the README fit the data?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from pydantic import JsonValue

from tests.tasks.flows.flow import Flow
from tests.tasks.flows.spoken import DAYS, MONTHS

_TOKEN = re.compile(r"\w[\w:-]*")  # a date, a time and the number of a booking are one each
_WEEKDAY = re.compile(rf"\b({'|'.join(DAYS)}),? (?:the )?(\d+)(?:st|nd|rd|th)?\b(?![:\d])", re.I)
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b", re.I)


def check_told(flow: Flow) -> list[str]:
    """Sums, times and numbers that agents say were returned or said before."""
    faults, found, rules = [], 0, flow.hand.told
    for where, session, _ in flow.sessions():
        known = set(rules.known)
        for i, turn in enumerate(session.turns):
            if turn.kind == "reply":
                matches = list(re.finditer(rules.pattern, turn.text))
                found += len(matches)
                said = {next(filter(None, m.groups()), m[0]) for m in matches}
                faults += [f"{where} turn {i}: who says {v}?" for v in sorted(said - known)]
                continue
            new = {token for text in _texts(turn.text or turn.result) for token in _tokens(text)}
            known |= new | {total for key, total in rules.sums.items() if key in new}
    if found < rules.least:
        faults.append(f"only {found} facts are told")
    return faults


def _texts(value: JsonValue) -> Iterator[str]:
    """The text itself, or all values in a result, without their keys."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    else:
        yield str(value)


def _tokens(text: str) -> set[str]:
    words = {word.strip(":-") for word in _TOKEN.findall(text)}
    return words | {word.upper() for word in words}


def check_weekdays(flow: Flow) -> list[str]:
    """Weekdays fit their dates. The month is the one named after the day, else the one that was
    named last, else that of now."""
    faults, found, now = [], 0, date.fromisoformat(flow.role.now[:10])
    for where, session, _ in flow.sessions():
        month = MONTHS[now.month - 1]
        for i, turn in enumerate(session.turns):
            for match in _WEEKDAY.finditer(turn.text):
                found += 1
                after = _MONTH.search(turn.text, match.end())
                meant = after[0].casefold() if after else month
                day = date(now.year, MONTHS.index(meant) + 1, int(match[2]))
                if DAYS[day.weekday()] != match[1].casefold():
                    faults.append(f"{where} turn {i}: {match[0]} is no day of {meant}")
            month = [month, *(name.casefold() for name in _MONTH.findall(turn.text))][-1]
    if found < flow.hand.weekdays:
        faults.append(f"only {found} days are named with their weekday")
    return faults


def check_readme(flow: Flow) -> list[str]:
    """The table of the README counts right: nodes, edges, tools, profiles, sessions, turns."""
    text = (flow.folder / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`[^|]*\|(.*)\|$", text, re.M)
    told = {name: [cell.strip() for cell in row.split("|")] for name, row in rows}
    faults = []
    for group, profiles, sessions in flow.groups():
        sizes = [len(profiles), len(sessions), sum(len(s.turns) for s in sessions)]
        row = ["", "", ""]
        if group in flow.charts:
            chart, tools = flow.charts[group], flow.role.scenario(group).tools
            row = [str(len(part)) for part in (chart.nodes, chart.edges, tools)]
        row += [str(size) for size in sizes]
        if told.get(group) != row:
            faults.append(f"{group}: {row}, and the README tells {told.get(group)}")
    return faults
