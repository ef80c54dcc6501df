"""Values that people write in their own way are found in what they say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.spoken import Spoken


@pytest.mark.parametrize(
    ("value", "said", "told"),
    [
        ("2031-06-06", ["on Friday, the 6th of June"], True),
        ("2031-06-06", ["june 6"], True),
        ("2031-06-06", ["the 6.6. please"], True),
        ("2031-06-06", ["in June"], False),
        ("2031-06-06", ["6 July"], False),
        ("2031-06-14", ["from 6 June", "no, the 14th"], True),
        ("2031-06-14", ["no, the 14th"], False),
        ("2032-02-03", ["3 February"], True),  # the next one
        ("2031-05-15", ["tomorrow"], True),
        ("2031-05-16", ["this friday"], True),
        ("2031-05-20", ["may I have 20 of them"], False),  # no month
        ("2031-05-20", ["May 20"], True),
        (2, ["two nights"], True),
        (2, ["room 204"], False),
        (1.5, ["1.5 km"], True),
        ("18:30", ["6:30 pm"], True),
        ("18:30", ["6:30"], False),
        ("12:00", ["at noon"], True),
        ("KW-MH 418", ["kw mh418"], True),
        ("RS-314", ["RS-341"], False),
        ("wrong_dish", ["it was the wrong dish"], True),
        (True, ["true"], False),  # only by an alias
        (False, ["rather not"], True),
        (["Emma", "Dune"], ["Emma", "and dune"], True),
        (["Emma", "Dune"], ["Emma"], False),
        ({"title": "Emma"}, ["Emma"], True),
    ],
)
def test_spoken(value: Any, said: list[str], told: bool) -> None:
    spoken = Spoken("2031-05-14 09:30", {"False": ("rather not",)})
    assert spoken.told(value, said) is told
