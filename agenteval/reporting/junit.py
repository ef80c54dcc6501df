"""JUnit XML of gates for CI systems; the test cases agree with the exit code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Et

from agenteval.analysis.gates import Gate

# What XML 1.0 cannot hold, section 2.2; escaping does not help these characters.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(
    gates: Sequence[Gate],
    name: str,
    properties: Mapping[str, object],
    figures: Mapping[str, str],
    *,
    undecided_passes: bool = False,
) -> str:
    """Return the document: one suite, one test case per gate; the same gates give the same bytes.

    `properties` belong to the suite, where every reader of the format allows them; `figures`, by
    criterion, go to the output of its test cases. There is no time stamp and no host name. A missed
    gate is a failure; an undecided one is an error, or passes with a note. Nothing is skipped,
    because many CI systems show skipped tests as green.
    """
    counts = {
        "tests": len(gates),
        "failures": sum(g.outcome == "missed" for g in gates),
        "errors": 0 if undecided_passes else sum(g.outcome == "undecided" for g in gates),
        "skipped": 0,
    }
    numbers = {k: str(v) for k, v in counts.items()}
    root = Et.Element("testsuites", {"name": "agenteval compare", **numbers, "time": "0"})
    suite = Et.SubElement(root, "testsuite", {"name": _text(name), **numbers, "time": "0"})
    listed = Et.SubElement(suite, "properties")
    for key, value in properties.items():
        Et.SubElement(listed, "property", {"name": _text(key), "value": _text(value)})
    for gate in gates:
        _case(suite, gate, figures.get(gate.criterion, ""), undecided_passes)
    Et.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Et.tostring(root, encoding="unicode") + "\n"


def _case(suite: Et.Element, gate: Gate, figures: str, undecided_passes: bool) -> None:
    attributes = {
        "classname": f"agenteval.compare.{gate.name}",
        "name": _text(gate.criterion),
        "time": "0",
    }
    case = Et.SubElement(suite, "testcase", attributes)
    message = _text(gate.detail)
    note = ""
    if gate.outcome == "missed":
        failure = Et.SubElement(case, "failure", {"message": message, "type": gate.name})
        failure.text = message
    elif gate.outcome == "undecided" and not undecided_passes:
        Et.SubElement(case, "error", {"message": f"undecided: {message}", "type": "undecided"})
    elif gate.outcome == "undecided":
        note = f"undecided, which passes here: {message}\n"
    if figures or note:
        Et.SubElement(case, "system-out").text = _text(note + figures)


def _text(value: object) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))
