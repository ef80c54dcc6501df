"""Tallies of one set of results, each worked out once however many tables and figures ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from agenteval.evaluators.workflows.endings import Endings, endings
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.tallies import (
    GROUPS,
    CauseShare,
    FormatPair,
    SessionTally,
    causes,
    format_pairs,
    groups_of,
    session_tally,
    turn_tally,
)
from agenteval.evaluators.workflows.turn_score import TurnTable


class Counted:
    """Sessions and turns with what `tallies` says of them, worked out when it is first asked for.

    Groups of the same members (the role of an only domain) are worked out once as well.
    """

    def __init__(
        self, sessions: Sequence[SessionResult] = (), turns: Sequence[TurnResult] = ()
    ) -> None:
        self.sessions, self.turns = tuple(sessions), tuple(turns)
        # By the identity of the members: they live as long as the two tuples above.
        self._tallies: dict[tuple[int, ...], SessionTally] = {}
        self._tables: dict[tuple[int, ...], TurnTable] = {}

    def sessions_by(self, name: str = "") -> list[SessionTally]:
        """As `session_tallies`, by the group of this name (one of GROUPS), or over all."""
        found = []
        for system, group, own in groups_of(self.sessions, GROUPS[name] if name else None):
            key = tuple(map(id, own))
            if key not in self._tallies:
                self._tallies[key] = session_tally(system, group, own)
            found.append(replace(self._tallies[key], group=group))
        return found

    def turns_by(self, name: str = "") -> list[tuple[str, str, TurnTable]]:
        """As `turn_tallies`, by the group of this name (one of GROUPS), or over all."""
        found = []
        for system, group, own in groups_of(self.turns, GROUPS[name] if name else None):
            key = tuple(map(id, own))
            if key not in self._tables:
                self._tables[key] = turn_tally(own)
            found.append((system, group, self._tables[key]))
        return found

    @cached_property
    def causes(self) -> list[CauseShare]:
        """Why sessions failed, by system."""
        return causes(self.sessions)

    @cached_property
    def endings(self) -> list[Endings]:
        """How sessions ended, by system."""
        return endings(self.sessions)

    @cached_property
    def session_pairs(self) -> list[FormatPair]:
        """Formats compared on the same users."""
        return format_pairs(self.sessions)

    @cached_property
    def turn_pairs(self) -> list[FormatPair]:
        """Formats compared on the same recorded sessions."""
        return format_pairs(self.turns)
