"""Read the folder of a role (see `scenario`)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from agenteval import files
from agenteval.errors import InputError
from agenteval.readers.strict_json import decode
from agenteval.readers.strict_yaml import load_yaml
from agenteval.readers.tasks import data_folders
from agenteval.workflows.backend import BACKEND_FILE, tools_of_backend
from agenteval.workflows.scenario import (
    CROSS,
    Profile,
    RecordedSession,
    RecordedTurn,
    Role,
    Scenario,
    WorkflowTool,
    schema_problem,
)

ROLE_FILE, SCENARIO_FILE = "role.yaml", "scenario.yaml"
_PROFILES_FILE, _TOOLS_FILE = "profiles.yaml", "tools.json"
_FILES = {
    "workflow.txt": "text",
    "policy.md": "text",
    "workflow.code": "code",
    "workflow.mmd": "flowchart",
}
_PROFILES, _TOOLS = TypeAdapter(tuple[Profile, ...]), TypeAdapter(tuple[WorkflowTool, ...])
_ROLE, _SCENARIO, _SESSION = TypeAdapter(Role), TypeAdapter(Scenario), TypeAdapter(RecordedSession)
_REPLAYED: Literal["users"] = "users"  # key of a file that `--agent recorded:NAME` replays
_RECORDED = TypeAdapter(dict[Literal["users"], dict[str, tuple[RecordedTurn, ...]]])
_LARGEST = 1_000_000  # bytes of one file; people write a few thousand
_R = TypeVar("_R")


def role_folders() -> dict[str, Path]:
    """All roles that can be found, by name: the folders of `tasks/flows`, the nearest first."""
    roles: dict[str, Path] = {}
    for folder in data_folders("tasks"):
        for path in filter(_is_role, sorted(folder.glob("flows/*"))):
            roles.setdefault(path.name, path)
    return roles


def _is_role(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (ROLE_FILE, *_FILES))


def find_role(name: str, where: str = "--role") -> Path:
    """The folder of a role, by name or path; `where` is what the name was given as.

    Raises InputError with the nearest names.
    """
    if _is_role(Path(name).expanduser()):
        return Path(name).expanduser()
    known = role_folders()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    raise InputError(
        f"no role {name!r} and no folder with a {ROLE_FILE} or policy.md; {hint}", where
    )


def read_role(folder: Path) -> Role:
    """The role of a folder. Where one of a single procedure has no tools.json this runs backend.py,
    whose methods are the tools then. Raises InputError naming file and line or key."""
    id = folder.resolve().name if folder.name in ("", "..") else folder.name
    single = any((folder / name).exists() for name in _FILES)
    about: Mapping[str, JsonValue] = {}
    if not single or (folder / ROLE_FILE).exists():
        about = _mapping(folder / ROLE_FILE)
    if single:
        about = {"title": id.replace("_", " "), "domain": id, **about}
    folders = _scenario_folders(folder)
    if single and folders:
        raise InputError(
            "a procedure stands here and in this folder: only one of them can be the role's",
            str(folders[0]),
        )
    if not (single or folders):
        needed = f"a role needs a folder with a {SCENARIO_FILE}, or its policy in policy.md"
        raise InputError(needed, str(folder))
    cross = folder / CROSS
    parts = {
        "id": id,
        "scenarios": [_scenario(path, folder, id) for path in folders or [folder]],
        "cross_profiles": _profiles(cross),
        "cross_sessions": _sessions(cross),
    }
    whole = _whole(parts, about, folder / ROLE_FILE)
    role = _valid(_ROLE, whole, folder / ROLE_FILE, parts)
    _check_references(role, folder)
    return role


def _scenario_folders(folder: Path) -> list[Path]:
    """Those of the scenarios. A folder with a part of one is a scenario that lacks its file."""
    parts = (SCENARIO_FILE, _TOOLS_FILE, *_FILES)
    folders = []
    for path in _visible(folder):
        if any((path / part).exists() for part in parts):
            if path.name == CROSS:
                raise InputError(f"no scenario can be called {CROSS!r}", str(path))
            folders.append(path)
    return folders


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, sorted, without hidden files, which editors and systems leave there."""
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot read ({error.strerror})", str(folder)) from error


def _whole(held: dict[str, Any], about: Mapping[str, JsonValue], path: Path) -> dict[str, Any]:
    """Both together: what a file says of itself cannot be what other files hold."""
    doubled = next((key for key in about if key in held), None)
    if doubled is not None:
        raise InputError(f"{doubled} cannot stand here: it follows from the folder", str(path))
    return {**held, **about}


def _scenario(folder: Path, role: Path, role_id: str) -> Scenario:
    """A scenario, or the only one of a role, which has the role's folder and name."""
    id, where = folder.name, folder / SCENARIO_FILE
    if folder == role:
        id, where = role_id, role / ROLE_FILE
    about = {"title": "the policy"} if folder == role else _mapping(where)
    texts: dict[str, str] = {}
    for name, format in _FILES.items():
        if (folder / name).exists():
            if format in texts:
                raise InputError(
                    "the text of a procedure stands in one file alone", str(folder / name)
                )
            texts[format] = read_text(folder / name)
    if not any(text.strip() for text in texts.values()):
        raise InputError(f"a scenario needs one of {', '.join(_FILES)}", str(folder))
    tools: tuple[WorkflowTool, ...]
    if folder == role and not (folder / _TOOLS_FILE).exists():
        tools = _valid(_TOOLS, tools_of_backend(role), role / BACKEND_FILE)
    else:
        tools = read_tools(folder / _TOOLS_FILE)
    parts = {
        "id": id,
        **texts,
        "tools": tools,
        "profiles": _profiles(folder, id),
        "sessions": _sessions(folder),
    }
    return _valid(
        _SCENARIO, _whole(parts, about, where), where, {**dict.fromkeys(_FILES.values()), **parts}
    )


def read_tools(path: Path) -> tuple[WorkflowTool, ...]:
    """The tools of a tools.json: in our form, or as function calling describes them. Raises
    InputError naming file and key."""
    data = decode(read_text(path), str(path))
    if isinstance(data, list):
        data = [
            one["function"]
            if isinstance(one, dict) and isinstance(one.get("function"), dict)
            else one
            for one in data
        ]
    tools = _valid(_TOOLS, data, path)
    _once((tool.name for tool in tools), "tool", path)
    for tool in tools:
        for what, schema in (("parameters", tool.parameters), ("returns", tool.returns)):
            if what == "returns" and not schema:
                continue
            problem = schema_problem(schema)
            if problem:
                raise InputError(f"{tool.name}.{what} {problem}", str(path))
    return tools


def _profiles(folder: Path, scenario: str = "") -> tuple[Profile, ...]:
    """The users of a folder; those that name no scenario are of the one given."""
    path = folder / _PROFILES_FILE
    _not_short(path.with_suffix(".yml"))
    if not path.exists():
        return ()
    data = _yaml(path)
    if scenario and isinstance(data, list):
        data = [{"scenarios": [scenario], **one} if isinstance(one, dict) else one for one in data]
    return _valid(_PROFILES, data, path)


def _sessions(folder: Path) -> tuple[RecordedSession, ...]:
    sessions = []
    for path in _visible(folder / "sessions"):
        _not_short(path)
        if path.suffix == ".yaml":
            content = _mapping(path)
            if _REPLAYED not in content:
                sessions.append(_valid(_SESSION, content, path))
    return tuple(sessions)


def read_recorded_turns(folder: Path, role: Role, name: str) -> dict[str, tuple[RecordedTurn, ...]]:
    """Return the turns that `--agent recorded:NAME` replays, by profile.

    They are in `sessions/NAME.yaml` of the role's folder. Raises InputError for a role without that
    file, naming those that it has, and for a profile that the role does not have.
    """
    sessions = folder / "sessions"
    files = {p.stem: p for p in _visible(sessions) if p.suffix == ".yaml"}
    recorded = sorted(stem for stem, path in files.items() if _REPLAYED in _mapping(path))
    if name not in recorded:
        has = f"it has {', '.join(recorded)}" if recorded else "it has none"
        raise InputError(
            f"{role.id} has no recorded session {name!r} to replay; {has}; "
            "docs/workflows.md says how to write one",
            str(sessions),
        )
    path = files[name]
    turns = _valid(_RECORDED, _mapping(path), path)[_REPLAYED]
    profiles = {p.id for s in role.scenarios for p in s.profiles} | {
        p.id for p in role.cross_profiles
    }
    for profile in turns:
        _known(profile, profiles, "no profile", path)
    return turns


def _not_short(path: Path) -> None:
    """Raise InputError for a file that would be passed over without a word."""
    if path.suffix == ".yml" and path.exists():
        raise InputError(f"this file has to be called {path.stem}.yaml", str(path))


def _mapping(path: Path) -> Mapping[str, JsonValue]:
    data = _yaml(path)
    if not isinstance(data, dict):
        raise InputError("this file is a mapping of keys to values", str(path))
    return data


def _yaml(path: Path) -> Any:
    return load_yaml(read_text(path), str(path))


def read_text(path: Path) -> str:
    """A text file of up to 1,000,000 bytes, with line feeds alone. Raises InputError."""
    return files.read_text(path, _LARGEST).replace("\r\n", "\n").replace("\r", "\n")


def _valid(noun: TypeAdapter[_R], data: Any, path: Path, taken: Collection[str] = ()) -> _R:
    try:
        return noun.validate_python(data)
    except ValidationError as error:
        raise InputError(_in_words(error, noun, data, taken), str(path)) from error


def _check_references(role: Role, folder: Path) -> None:
    """Names that stand in one file and mean something in another."""
    known = {s.id for s in role.scenarios}
    for group, profiles, sessions in [
        *((s.id, s.profiles, s.sessions) for s in role.scenarios),
        (CROSS, role.cross_profiles, role.cross_sessions),
    ]:
        at = folder / group if (folder / group).is_dir() else folder
        where, recorded = at / _PROFILES_FILE, at / "sessions"
        _once((p.id for p in profiles), "profile", where)
        _once((s.id for s in sessions), "session", recorded)
        for profile in profiles:
            for name in profile.scenarios:
                _known(name, known, f"{profile.id}: no scenario", where)
            tools = {t.name for t in role.tools_of(profile.scenarios)}
            for action in profile.actions:
                _known(action.tool, tools, f"{profile.id}: no tool", where)
        ids = {p.id for p in profiles}
        for session in sessions:
            _known(session.profile, ids, f"{session.id}: no profile", recorded)


def _once(ids: Iterable[str], what: str, where: Path) -> None:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise InputError(f"two {what}s are called {id!r}", str(where))
        seen.add(id)


def _known(name: str, known: set[str], what: str, where: Path) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"is {near[0]!r} meant?" if near else f"known: {', '.join(sorted(known))}"
        raise InputError(f"{what} {name!r}; {hint}", str(where))


_NEAR = 0.3  # a hint in the form of a question may be wide of the mark


def _in_words(
    error: ValidationError, noun: TypeAdapter[Any], data: Any, taken: Collection[str]
) -> str:
    """One line on the first object that is wrong: its unknown keys, the one that each may stand
    for, which are allowed, and all that are missing; or what is wrong with the first value.

    `noun` is what `data` was read as. `taken` are keys of the whole that no file may hold.
    """

    def line(place: Sequence[int | str], text: str) -> str:
        return ": ".join(filter(None, (".".join(map(str, place)), text)))

    errors = error.errors()
    first = errors[0]
    place = first["loc"][:-1]
    if first["type"] not in ("missing", "extra_forbidden"):
        message = first["msg"].removeprefix("Value error, ").replace("valid tuple", "valid list")
        return line(first["loc"], message[:1].lower() + message[1:])
    here = [(e["type"], str(e["loc"][-1])) for e in errors if e["loc"][:-1] == place]
    missing = [key for type_, key in here if type_ == "missing"]
    unknown = [key for type_, key in here if type_ == "extra_forbidden"]
    if not unknown:
        if len(missing) == 1:
            return line((*place, missing[0]), "field required")
        return line(place, f"fields required: {', '.join(missing)}")
    allowed = [key for key in _keys(noun.json_schema(), place) if place or key not in taken]
    for part in place:
        data = data[part]
    free = [key for key in allowed if key not in data]
    meant: list[str] = []
    for key in unknown:
        near = difflib.get_close_matches(
            key, [name for name in free if name not in meant], 1, _NEAR
        )
        meant += near
    if len(unknown) == 1:
        place, problem = (*place, unknown[0]), "unknown key"
    else:
        problem = f"unknown keys {', '.join(unknown)}"
    if meant:
        verb = "is" if len(meant) == 1 else "are"
        problem += f"; {verb} {', '.join(f'`{name}`' for name in meant)} meant?"
    problem += f"{' ' if meant else '; '}allowed: {', '.join(allowed)}"
    left = [name for name in missing if name not in meant]
    return line(place, problem + (f"; missing: {', '.join(left)}" if left else ""))


def _keys(schema: dict[str, Any], place: Sequence[int | str]) -> tuple[str, ...]:
    """The keys of the object at this place, by the JSON schema that pydantic makes of a noun."""
    at = schema
    for part in (None, *place):
        if part is not None:
            inner = at.get("items") if isinstance(part, int) else at.get("properties", {}).get(part)
            at = inner or {}
        while "$ref" in at:
            at = schema["$defs"][at["$ref"].rsplit("/", 1)[-1]]
    return tuple(at.get("properties", {}))
