"""The one table of how a session can end."""

from __future__ import annotations

from typing import get_args

from agenteval.workflows.session import DECIDED_BY, ENDS, DecidedBy, SessionEnd


def test_every_end_has_its_words_and_a_column_of_its_own() -> None:
    assert ENDS.keys() == set(get_args(SessionEnd))
    assert len({end.column for end in ENDS.values()}) == len(ENDS)
    assert DECIDED_BY.keys() == {*get_args(DecidedBy), None}
