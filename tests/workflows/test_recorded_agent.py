"""Recorded sessions are replayed word by word, and what does not fit them is no score."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.errors import InputError
from agenteval.workflows.folder import find_role, read_role
from tests.workflows.desk import FOLDER

ROLES = [FOLDER, find_role("meeting_rooms"), find_role("hotel_reception")]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "desk"))


def sessions(role: Path, agent: str, store: Path, **more: Any) -> Any:
    return agenteval.flow_sessions(
        role, agent=agent, user="scripted", store=store, **{"max_unscored": 1, **more}
    )


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_recorded_agents_do_what_their_names_say(role: Path, tmp_path: Path) -> None:
    users = sum(len(s.profiles) for s in read_role(role).scenarios)
    users += len(read_role(role).cross_profiles)
    for seed in (0, 1):  # remarks of the user come at other turns
        perfect = sessions(role, "recorded:perfect", tmp_path / "p.db", seed=seed)
        assert len(perfect.sessions) == users
        for session in perfect.sessions:
            assert session.verdict, session.log
            assert session.verdict.success
            assert not session.verdict.deviations
            assert session.log.ended == "user"
    skips = sessions(role, "recorded:skips_step", tmp_path / "s.db")
    assert len(skips.sessions) > 0.8 * users
    for session in skips.sessions:
        assert session.verdict.success is False
        assert [d.cause for d in session.verdict.deviations] == ["missing_step"]


def test_a_user_who_says_something_else_is_a_failure_of_the_recording(
    desk: Path, tmp_path: Path
) -> None:
    change(desk / "lend_book" / "profiles.yaml", "reader_id: R-20", "reader_id: R-17")
    report = sessions(desk, "recorded:perfect", tmp_path / "s.db", profiles=["hana"])
    (failed,) = report.failures
    assert (failed.log.status, failed.log.who) == ("error:infrastructure", "agent")
    assert failed.verdict is None
    assert "desk/lend_book/hana" in failed.log.message
    assert "turn 4: the user says 'reader_id: R-17'" in failed.log.message
    (row,) = report["sessions"].rows
    assert row["success"].value is None


def test_a_recording_that_ends_too_early_is_a_failure(desk: Path, tmp_path: Path) -> None:
    recording = desk / "sessions" / "short.yaml"
    recording.write_text(
        "users:\n  ida:\n    - user: I bring a book back.\n      reply: Which `title`?\n"
    )
    lines: list[str] = []
    report = sessions(desk, "recorded:short", tmp_path / "s.db", notify=lines.append)
    (failed,) = report.failures
    assert "has only 1 turn," in failed.log.message
    assert "recorded:short has no session with 3 of 4 users" in "\n".join(lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agent": "scripted:perfect"}, "removed: use recorded:perfect or recorded:skips_step"),
        ({"agent": "recorded:perfekt"}, "no recorded session 'perfekt' .*has perfect, skips_step"),
        ({"agent": "recorded:../role"}, "no recorded session '../role'"),
        (
            {"user": "model", "simulator": "m", "simulator_url": "http://127.0.0.1:9/v1"},
            "add --user scripted",
        ),
        ({"roles": find_role("invoice_desk")}, "invoice_desk has no recorded session 'perfect'"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    store = tmp_path / "s.db"
    every = {"roles": FOLDER, "agent": "recorded:perfect", "user": "scripted"} | arguments
    with pytest.raises(InputError, match=message):
        agenteval.flow_sessions(**every, store=store)
    assert not store.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("users:\n  nobody:\n    - {user: Hi, reply: Bye}\n", "no profile 'nobody'"),
        ("users:\n  ida:\n    - {user: Hi, answer: Bye}\n", "unknown key"),
        ("users: [ida]\n", "dictionary"),
        ("users: {}\nmore: 1\n", "more"),
    ],
)
def test_a_recording_that_cannot_be_read_is_refused(desk: Path, text: str, message: str) -> None:
    (desk / "sessions" / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        sessions(desk, "recorded:mine", desk / "s.db")
    assert "mine.yaml" in str(refused.value)
