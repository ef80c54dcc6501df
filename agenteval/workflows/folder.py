"""Read the folder of a role (see `scenario`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from agenteval import files
from agenteval.errors import InputError
from agenteval.readers.strict_json import decode
from agenteval.readers.strict_yaml import load_yaml
from agenteval.readers.tasks import data_folders
from agenteval.text import did_you_mean
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
    standard_schema,
)

ROLE_FILE, SCENARIO_FILE = "role.yaml", "scenario.yaml"
_PROFILES_FILE, TOOLS_FILE = "profiles.yaml", "tools.json"
_FILES = {
    "workflow.txt": "text",
    "policy.md": "text",
    "workflow.code": "code",
    "workflow.mmd": "flowchart",
}
_REPLAYED = "users"  # the key of a file that `--agent recorded:NAME` replays
_LARGEST = 1_000_000  # bytes of one file; people write a few thousand
_R = TypeVar("_R")


def role_folders() -> dict[str, Path]:
    """Return all roles by name: the folders of `tasks/flows`, nearest first."""
    roles: dict[str, Path] = {}
    for folder in data_folders("tasks"):
        for path in filter(_is_role, sorted(folder.glob("flows/*"))):
            roles.setdefault(path.name, path)
    return roles


def _is_role(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (ROLE_FILE, *_FILES))


def find_role(name: str, where: str = "--role") -> Path:
    """Return the folder of a role, by name or path; `where` is the option that gave the name.

    Raises InputError with the nearest names.
    """
    if _is_role(Path(name).expanduser()):
        return Path(name).expanduser()
    roles = role_folders()
    if name in roles:
        return roles[name]
    hint = did_you_mean(name, roles, most=3, cutoff=0.4) or f"known: {', '.join(roles) or 'none'}"
    raise InputError(
        f"no role {name!r} and no folder with a {ROLE_FILE} or policy.md; {hint}", where
    )


def read_role(folder: Path) -> Role:
    """Return the role of a folder. If a role of one procedure has no tools.json, this runs
    backend.py, whose methods are then the tools. Raises InputError with file and line or key."""
    id = folder.resolve().name if folder.name in ("", "..") else folder.name
    where = folder / ROLE_FILE
    single = any((folder / name).exists() for name in _FILES)
    about = _mapping(where) if where.exists() or not single else {}
    if single:
        about = {"title": id.replace("_", " "), "domain": id, **about}
    folders = []
    for path in _visible(folder):  # report scenarios without their main file
        if any((path / part).exists() for part in (SCENARIO_FILE, TOOLS_FILE, *_FILES)):
            if path.name == CROSS:
                raise InputError(f"no scenario can be called {CROSS!r}", str(path))
            folders.append(path)
    if single and folders:
        raise InputError(
            "the role has a procedure here and in this folder; keep only one", str(folders[0])
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
    role = _valid(Role, _joined(parts, about, where), where, parts)
    _check_references(role, folder)
    return role


def _visible(folder: Path) -> list[Path]:
    """Return the sorted entries of a folder, without hidden files."""
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot read ({error.strerror})", str(folder)) from error


def _joined(parts: dict[str, Any], about: Mapping[str, JsonValue], path: Path) -> dict[str, Any]:
    """Return the values from other files, merged with those in the file at `path`."""
    for key in about.keys() & parts.keys():
        raise InputError(f"{key} is not allowed here: it follows from the folder", str(path))
    return {**parts, **about}


def _scenario(folder: Path, role: Path, role_id: str) -> Scenario:
    """Return a scenario, or the only one of a role, which shares the role's folder and name."""
    only = folder == role
    where = role / ROLE_FILE if only else folder / SCENARIO_FILE
    about = {"title": "the policy"} if only else _mapping(where)
    texts: dict[str, str] = {}
    for name, format in _FILES.items():
        path = folder / name
        if path.exists():
            if format in texts:
                raise InputError("the text of a procedure must be in one file", str(path))
            texts[format] = read_text(path)
    if not any(text.strip() for text in texts.values()):
        raise InputError(f"a scenario needs one of {', '.join(_FILES)}", str(folder))
    id = role_id if only else folder.name
    if only and not (folder / TOOLS_FILE).exists():
        tools = _valid(tuple[WorkflowTool, ...], tools_of_backend(role), role / BACKEND_FILE)
    else:
        tools = read_tools(folder / TOOLS_FILE)
    profiles, sessions = _profiles(folder, id), _sessions(folder)
    parts = {"id": id, **texts, "tools": tools, "profiles": profiles, "sessions": sessions}
    return _valid(Scenario, _joined(parts, about, where), where, {*_FILES.values(), *parts})


def read_tools(path: Path) -> tuple[WorkflowTool, ...]:
    """Return the tools of a tools.json, in our format, that of function calling or FlowBench's (see
    `scenario.standard_schema`). Raises InputError with file and key."""
    data = decode(read_text(path), str(path))
    if isinstance(data, list):
        data = [_with_schemas(tool) for tool in data]
    tools = _valid(tuple[WorkflowTool, ...], data, path)
    _once((tool.name for tool in tools), "tool", path)
    for tool in tools:
        for what, schema in (("parameters", tool.parameters), ("returns", tool.returns)):
            if (schema or what == "parameters") and (problem := schema_problem(schema)):
                raise InputError(f"{tool.name}.{what} {problem}", str(path))
    return tools


def _with_schemas(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    tool = tool["function"] if isinstance(tool.get("function"), dict) else tool
    written = {key: tool[key] for key in ("parameters", "returns") if tool.get(key)}
    return {**tool, **{key: standard_schema(schema) for key, schema in written.items()}}


def _profiles(folder: Path, scenario: str = "") -> tuple[Profile, ...]:
    """Return the users of a folder; users without a scenario get the given one."""
    path = folder / _PROFILES_FILE
    _refuse_yml(path.with_suffix(".yml"))
    if not path.exists():
        return ()
    data = load_yaml(read_text(path), str(path))
    if scenario and isinstance(data, list):
        data = [{"scenarios": [scenario], **d} if isinstance(d, dict) else d for d in data]
    return _valid(tuple[Profile, ...], data, path)


def _sessions(folder: Path) -> tuple[RecordedSession, ...]:
    paths = _visible(folder / "sessions")
    for path in paths:
        _refuse_yml(path)
    contents = {path: _mapping(path) for path in paths if path.suffix == ".yaml"}
    return tuple(
        _valid(RecordedSession, content, path)
        for path, content in contents.items()
        if _REPLAYED not in content
    )


def read_recorded_turns(folder: Path, role: Role, name: str) -> dict[str, tuple[RecordedTurn, ...]]:
    """Return the turns that `--agent recorded:NAME` replays, by profile.

    They are in `sessions/NAME.yaml` of the role's folder. Raises InputError if the role has no such
    file (listing those it has), or for an unknown profile.
    """
    sessions = folder / "sessions"
    contents = {
        p.stem: c
        for p in _visible(sessions)
        if p.suffix == ".yaml" and _REPLAYED in (c := _mapping(p))
    }
    if name not in contents:
        has = f"it has {', '.join(sorted(contents))}" if contents else "it has none"
        raise InputError(
            f"{role.id} has no recorded session {name!r} to replay; {has}; "
            "docs/workflows.md says how to write one",
            str(sessions),
        )
    path = sessions / f"{name}.yaml"
    kind = dict[Literal["users"], dict[str, tuple[RecordedTurn, ...]]]
    turns = _valid(kind, contents[name], path)["users"]
    profiles = (*(p for s in role.scenarios for p in s.profiles), *role.cross_profiles)
    for profile in turns:
        _check_name(profile, {p.id for p in profiles}, "no profile", path)
    return turns


def _refuse_yml(path: Path) -> None:
    """Raise InputError for a file that would otherwise be ignored silently."""
    if path.suffix == ".yml" and path.exists():
        raise InputError(f"this file must be called {path.stem}.yaml", str(path))


def _mapping(path: Path) -> Mapping[str, JsonValue]:
    data = load_yaml(read_text(path), str(path))
    if not isinstance(data, dict):
        raise InputError("this file must be a mapping of keys to values", str(path))
    return data


def read_text(path: Path) -> str:
    """Return a text file of up to 1,000,000 bytes, with line feeds only. Raises InputError."""
    return files.read_text(path, _LARGEST).replace("\r\n", "\n").replace("\r", "\n")


def _check_references(role: Role, folder: Path) -> None:
    """Check the names in one file that another file defines."""
    scenarios = {s.id for s in role.scenarios}
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
                _check_name(name, scenarios, f"{profile.id}: no scenario", where)
            tools = {t.name for t in role.tools_of(profile.scenarios)}
            for action in profile.actions:
                _check_name(action.tool, tools, f"{profile.id}: no tool", where)
        for session in sessions:
            _check_name(
                session.profile, {p.id for p in profiles}, f"{session.id}: no profile", recorded
            )


def _once(ids: Iterable[str], what: str, where: Path) -> None:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise InputError(f"two {what}s are called {id!r}", str(where))
        seen.add(id)


def _check_name(name: str, names: set[str], what: str, where: Path) -> None:
    if name not in names:
        hint = did_you_mean(name, names) or f"known: {', '.join(sorted(names))}"
        raise InputError(f"{what} {name!r}; {hint}", str(where))


def _valid(kind: type[_R], data: Any, path: Path, parts: Collection[str] = ()) -> _R:
    """Return the data as `kind`; `parts` are its keys that files must not contain."""
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        # A misspelt key is more informative than the missing key that results.
        first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        place, problem = first["loc"], first["msg"].removeprefix("Value error, ")
        problem = problem[:1].lower() + problem[1:].replace("valid tuple", "valid list")
        if first["type"] == "extra_forbidden":
            keys = _keys(adapter.json_schema(), place[:-1])
            allowed = [key for key in keys if len(place) > 1 or key not in parts]
            hint = did_you_mean(str(place[-1]), allowed)
            problem = f"unknown key; {hint and hint + ' '}allowed: {', '.join(allowed)}"
        line = f"{'.'.join(map(str, place))}: {problem}" if place else problem
        raise InputError(line, str(path)) from error


def _keys(schema: dict[str, Any], place: Sequence[int | str]) -> tuple[str, ...]:
    """Return the allowed keys of the object at this place, by pydantic's JSON schema."""
    at = schema
    for part in (None, *place):
        if part is not None:
            inner = at.get("items") if isinstance(part, int) else at.get("properties", {}).get(part)
            at = inner or {}
        while "$ref" in at:
            at = schema["$defs"][at["$ref"].rsplit("/", 1)[-1]]
    return tuple(at.get("properties", {}))
