"""Cases of a role: which, under which names, and what makes them other ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.workflows.cases import Choice, OpenRole, open_role, session_cases, turn_cases
from agenteval.workflows.scenario import RecordedSession

DESK = Path(__file__).parent / "library_desk"
OF = open_role(DESK)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DESK, tmp_path / "desk"))


def edited(folder: Path, file: str, old: str, new: str) -> OpenRole:
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return open_role(folder)


def keys(of: OpenRole) -> dict[str, str]:
    return {case.profile.id: case.key for case in session_cases([of])}


def test_turns_of_the_agent_with_what_was_said_before() -> None:
    cases = turn_cases([OF])
    assert [case.gold.turn for case in cases] == [1, 3, 4, 6, 7, 9]
    assert {case.info.task for case in cases} == {"library_desk/lend_book/hana_dune"}
    call = cases[1]
    assert call.gold.action.tool == "find_book"
    assert (call.info.said, call.info.gold) == ("Dune, please.", 'find_book({"title": "Dune"})')
    # After a call, what was done just before is the call.
    assert cases[2].info.said == 'find_book({"title": "Dune"})'


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice("single"), ["hana", "otto", "ida"]),
        (Choice("cross"), ["jan"]),
        (Choice(scenarios=("return_book", "cross")), ["ida", "jan"]),
        (Choice(profiles=("jan", "hana")), ["hana", "jan"]),
        (Choice("cross", profiles=("hana",)), []),
        (Choice("single", scenarios=("cross",)), []),
    ],
)
def test_choices(choice: Choice, expected: list[str]) -> None:
    assert [case.profile.id for case in session_cases([OF], choice)] == expected


def test_names_that_no_role_has() -> None:
    with pytest.raises(InputError, match="--scenario: no scenario 'x'; known: cross, lend_book"):
        session_cases([OF], Choice(scenarios=("x",)))
    with pytest.raises(InputError, match="--profile: no profile 'x'; known: hana, ida, jan, otto"):
        turn_cases([OF], Choice(profiles=("x",)))


def test_the_key_follows_what_can_change_a_session(folder: Path) -> None:
    before = keys(open_role(folder))
    lend = edited(folder, "lend_book/workflow.txt", "say goodbye", "say farewell")
    after = keys(lend)
    assert {p for p in before if before[p] != after[p]} == {"hana", "otto", "jan"}
    backend = edited(folder, "backend.py", "2031-04-09", "2031-05-09")
    assert {p for p in before if keys(backend)[p] != after[p]} == set(before)
    user = edited(folder, "return_book/profiles.yaml", "in a hurry", "with time")
    assert {p for p in before if keys(user)[p] != keys(backend)[p]} == {"ida"}


def test_names_and_recorded_results(folder: Path) -> None:
    def versions(of: OpenRole) -> set[str]:
        return {c.info.version for c in (*session_cases([of]), *turn_cases([of]))}

    before = open_role(folder)
    renamed = edited(folder, "role.yaml", "Customer Service", "Libraries")
    assert keys(renamed) == keys(before)
    assert {c.info.domain for c in session_cases([renamed])} == {"Libraries"}
    recorded = edited(folder, "lend_book/sessions/hana.yaml", "shelf: S4}", "shelf: S9}")
    assert keys(recorded) == keys(before)  # the backend answers
    changed = edited(folder, "role.yaml", "town library", "new library")
    assert "" not in versions(before)
    assert not versions(changed) & versions(before)
    (folder / "backend.py").unlink()
    without = open_role(folder)
    assert (without.backend, without.backend_sha256) == (None, None)
    words = edited(folder, "lend_book/sessions/hana.yaml", "Dune, please.", "I want Dune.")
    assert keys(words) == keys(without)
    result = edited(folder, "lend_book/sessions/hana.yaml", "shelf: S9}", "shelf: S4}")
    assert keys(result) != keys(without)


def test_a_recording_across_scenarios_is_told_all_procedures_of_the_role() -> None:
    recorded = OF.role.scenario("lend_book").sessions[0]
    jan = OF.role.cross_profiles[0]
    cross = RecordedSession(id="swap", profile="jan", turns=recorded.turns)
    only = jan.model_copy(update={"scenarios": ("lend_book",)})
    role = OF.role.model_copy(update={"cross_sessions": (cross,), "cross_profiles": (only,)})
    changed = role.model_copy(
        update={
            "scenarios": tuple(
                s.model_copy(update={"text": s.text + " Be kind."}) if s.id == "return_book" else s
                for s in role.scenarios
            )
        }
    )

    def of(found: Any) -> list[str]:
        return [c.key for c in turn_cases([replace(OF, role=found)], Choice("cross"))]

    assert not set(of(role)) & set(of(changed))


def test_two_roles_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other" / "desk"))
    with pytest.raises(InputError, match="desk/lend_book/hana is defined twice"):
        session_cases([open_role(folder), open_role(other)])
    plain = session_cases([open_role(folder), OF])
    assert len({case.key for case in plain}) == 8  # the same under two names is two
