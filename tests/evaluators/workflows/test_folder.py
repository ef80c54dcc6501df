"""The folder of a role as a person writes it: read whole, and refused with file and reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.workflows.folder import (
    backend_sha256,
    find_role,
    load_backend,
    read_role,
    role_folders,
)

DESK = Path(__file__).parent / "library_desk"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(DESK, tmp_path / "library_desk"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as error:
        read_role(folder)
    return str(error.value)


def test_the_desk() -> None:
    role = read_role(DESK)
    assert role.id == "library_desk"
    assert [s.id for s in role.scenarios] == ["lend_book", "return_book"]
    lend = role.scenario("lend_book")
    assert lend.code.startswith("def lend_a_book():")
    assert lend.flowchart.startswith("flowchart TD")
    assert [t.name for t in lend.tools] == ["find_book", "lend_book"]
    assert lend.tools[0].fields == ("is_in", "shelf")
    assert lend.tools[1].required == ("title", "reader_id")
    assert [t.name for t in role.tools_of(("return_book", "lend_book"))] == [
        "return_book", "find_book", "lend_book",
    ]  # fmt: skip
    assert [p.id for p in lend.profiles] == ["hana", "otto"]
    assert lend.profiles[1].facts["title"] == ["Emma", "Ulysses"]
    assert role.cross_profiles[0].scenarios == ("return_book", "lend_book")
    assert [t.kind for t in lend.sessions[0].turns].count("call") == 2


def test_dates_stay_text(desk: Path) -> None:
    change(desk / "lend_book/sessions/hana.yaml", 'due: "2031-04-09"', "due: 2031-04-09")
    results = [t.result for t in read_role(desk).scenario("lend_book").sessions[0].turns]
    assert {"lent": True, "due": "2031-04-09"} in results


def test_the_hash_tells_contents_apart(desk: Path) -> None:
    first = read_role(desk).sha256
    assert first == read_role(DESK).sha256
    change(desk / "lend_book/workflow.txt", "When", "Whenever")
    assert read_role(desk).sha256 != first
    assert backend_sha256(desk) == backend_sha256(DESK)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("role.yaml", "domain:", "domin:", "role.yaml"),
        ("lend_book/tools.json", '"effect": "read",', "", "tools.json: 0.effect: field required"),
        ("lend_book/tools.json", '"returns"', '"return"', "tools.json: 0.returns: field required"),
        ("lend_book/tools.json", '"name": "find_book"', '"name": "find book"', "0.name"),
        ("lend_book/tools.json", "[", "", "tools.json: not valid JSON"),
        ("lend_book/profiles.yaml", "tool: lend_book", "tool: lend_bok", "is 'lend_book' meant?"),
        ("lend_book/profiles.yaml", "[lend_book]", "[lend_bok]", "no scenario 'lend_bok'"),
        ("lend_book/profiles.yaml", "persona:", "person:", "profiles.yaml"),
        ("lend_book/sessions/hana.yaml", "profile: hana", "profile: hanna", "is 'hana' meant?"),
        ("lend_book/sessions/hana.yaml", "kind: call", "kind: cal", "hana.yaml: turns.3.kind"),
        ("lend_book/sessions/hana.yaml", "tool: find_book, ", "", "a call needs the name"),
        ("lend_book/sessions/hana.yaml", "turns:", "turns: [", "not valid YAML"),
        ("return_book/tools.json", "return_book", "find_book", "defined otherwise in lend_book"),
    ],
)
def test_refused_with_file_and_reason(desk: Path, file: str, old: str, new: str, told: str) -> None:
    change(desk / file, old, new)
    assert told in refused(desk)


@pytest.mark.parametrize("file", ["workflow.txt", "workflow.code", "workflow.mmd", "tools.json"])
def test_a_missing_file(desk: Path, file: str) -> None:
    (desk / "lend_book" / file).unlink()
    assert f"{file}: cannot read" in refused(desk)


def test_no_text_and_no_mapping(desk: Path) -> None:
    (desk / "lend_book/workflow.txt").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refused(desk)
    (desk / "role.yaml").write_text("- a list\n")
    assert "this file is a mapping" in refused(desk)


def test_a_role_without_scenarios(tmp_path: Path) -> None:
    shutil.copy(DESK / "role.yaml", tmp_path)
    assert "needs a folder with a scenario.yaml" in refused(tmp_path)


def test_roles_are_found_by_folder_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(DESK, tmp_path / "flows/library_desk")
    monkeypatch.setenv("AGENTEVAL_TASKS", str(tmp_path))
    assert role_folders()["library_desk"] == tmp_path / "flows/library_desk"
    assert find_role("library_desk") == tmp_path / "flows/library_desk"
    assert find_role(str(DESK)) == DESK
    with pytest.raises(InputError, match="did you mean library_desk"):
        find_role("libary_desk")


def test_the_backend() -> None:
    backend = load_backend(DESK)
    one, other = backend(), backend()
    lent = one.lend_book(title="Dune", reader_id="R-20")  # type: ignore[attr-defined]
    assert lent == {"lent": True, "due": "2031-04-09"}
    assert one.state["books"]["Dune"]["holder"] == "R-20"
    assert other.state["books"]["Dune"]["holder"] is None
    assert json.loads(json.dumps(one.state)) == one.state


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class Other: ...", "there is no class Backend"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("class Backend(:", "SyntaxError"),
    ],
)
def test_backends_that_cannot_be_had(tmp_path: Path, source: str, told: str) -> None:
    (tmp_path / "backend.py").write_text(source)
    with pytest.raises(InputError, match=told):
        load_backend(tmp_path)
    (tmp_path / "backend.py").unlink()
    with pytest.raises(InputError, match=r"needs a backend\.py"):
        load_backend(tmp_path)
