"""Results of calls as the recorded sessions of a role hold them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from agenteval.evaluators.workflows.scenario import Profile, RecordedSession, Role
from agenteval.records import canonical_json


class Recorded:
    """Replays results: same tool, same arguments up to case, blanks and empty values.

    The sessions of the user's own profile come first. A call made for the n-th time gets the n-th
    result of the first session that holds it, later ones its last. Results that are none
    (`fits` says so) are not replayed.
    """

    def __init__(
        self, role: Role, profile: Profile, fits: Callable[[str, JsonValue], bool]
    ) -> None:
        self._results: dict[str, list[JsonValue]] = {}
        self._asked: dict[str, int] = {}
        for session in _sessions(role, profile):
            mine: dict[str, list[JsonValue]] = {}
            for turn in session.turns:
                if turn.kind == "call" and fits(turn.tool, turn.result):
                    mine.setdefault(key_of(turn.tool, turn.arguments), []).append(turn.result)
            for key, results in mine.items():
                self._results.setdefault(key, results)

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> JsonValue:
        """A copy of the recorded result, None where there is none."""
        key = key_of(tool, arguments)
        results = self._results.get(key)
        if results is None:
            return None
        before = self._asked.get(key, 0)
        self._asked[key] = before + 1
        return copy.deepcopy(results[min(before, len(results) - 1)])


def _sessions(role: Role, profile: Profile) -> list[RecordedSession]:
    """Those of the profile's scenarios and those that cross them, the profile's own first."""
    found = [s for name in profile.scenarios for s in role.scenario(name).sessions]
    found += role.cross_sessions
    return sorted(found, key=lambda session: session.profile != profile.id)


def key_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for calls that mean the same."""
    return canonical_json([tool, _plain(dict(arguments))])


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v not in (None, "", [], {})}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
