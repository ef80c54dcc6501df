"""Findings shown to a judge of the run: a section of what it sees, and part of its hash."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agenteval.records import Finding, Findings, View
from agenteval.records.run import Span

MOST = 50  # findings shown
_WORDS = 300  # characters of a description or quote
_HEADING = "[errors found by"
_FAKE = re.compile(r"^(?=\s*\[errors found by)", re.M | re.I)


def with_findings(
    view: View, findings: Findings | None, finder: str, spans: Mapping[str, Span] | None = None
) -> View:
    """The view with a section "[errors found by FINDER]" at the end; the hash becomes another.

    A finder that has found nothing is told from one that could not work (`findings` with a status)
    or has not tried (None): in these cases the section says that nothing is known. `spans` by id
    give places their names. Grades are not shown: they would hand the judge another's verdict.
    Lines of the trajectory that look like such a section get a backslash in front, and each
    finding is one line, so that no text can pretend to be a finding.
    """
    name = " ".join(finder.replace("]", " ").split())[:80]
    lines = [f"{_HEADING} {name}]", *_lines(findings, spans or {})]
    body = _FAKE.sub(r"\\", view.trajectory)
    return view.model_copy(update={"trajectory": f"{body}\n\n" + "\n".join(lines)})


def _lines(findings: Findings | None, spans: Mapping[str, Span]) -> list[str]:
    if findings is None:
        return ["This run was not examined: it may hold errors or none."]
    if findings.status is not None:
        return [f"This run could not be examined ({findings.status}): it may hold errors or none."]
    if not findings.findings:
        return ["It was examined, and no error was found. There may be errors all the same."]
    lines = ["Each may be mistaken: check it against the work above."]
    lines += [f"{i}. {_told(one, spans)}" for i, one in enumerate(findings.findings[:MOST], 1)]
    rest = len(findings.findings) - MOST
    return [*lines, f"... and {rest} more"] if rest > 0 else lines


def _told(finding: Finding, spans: Mapping[str, Span]) -> str:
    span = spans.get(finding.span)
    place = f"{span.kind} {_line(span.name)}" if span else f"span {_line(finding.span)}"
    text = f"{_line(finding.category)} at {place}"
    if finding.impact:
        text += f", impact {finding.impact}"
    if finding.confidence is not None:
        text += f", confidence {finding.confidence:.2f}"
    if finding.description:
        text += f": {_line(finding.description)}"
    return text + (f' (quoted: "{_line(finding.evidence)}")' if finding.evidence else "")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS else line[:_WORDS] + " [...]"
