"""Read the folder of a role (see `scenario`), and its backend."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from agenteval import files
from agenteval.errors import InputError
from agenteval.evaluators.workflows.scenario import (
    CROSS,
    Profile,
    RecordedSession,
    Role,
    Scenario,
    WorkflowTool,
    schema_problem,
)
from agenteval.readers.strict_json import decode
from agenteval.readers.strict_yaml import load_yaml
from agenteval.readers.tasks import data_folders

ROLE_FILE, BACKEND_FILE, SCENARIO_FILE = "role.yaml", "backend.py", "scenario.yaml"
_PROFILES_FILE, _TOOLS_FILE = "profiles.yaml", "tools.json"
_FILES = {"text": "workflow.txt", "code": "workflow.code", "flowchart": "workflow.mmd"}
_PROFILES, _TOOLS = TypeAdapter(tuple[Profile, ...]), TypeAdapter(tuple[WorkflowTool, ...])
_ROLE, _SCENARIO, _SESSION = TypeAdapter(Role), TypeAdapter(Scenario), TypeAdapter(RecordedSession)
_LARGEST = 1_000_000  # bytes of one file; people write a few thousand
_R = TypeVar("_R")


class StatefulBackend(Protocol):
    """What backend.py defines as `Backend`: one method for each tool, and the state.

    A method returns a JSON object; ValueError with a sentence refuses the arguments. Identifiers
    it makes up follow from the arguments alone, so that the order of calls changes no state.
    """

    state: dict[str, Any]


def role_folders() -> dict[str, Path]:
    """All roles that can be found, by name: `tasks/flows/*/role.yaml`, the nearest first."""
    found: dict[str, Path] = {}
    for folder in data_folders("tasks"):
        for path in sorted(folder.glob(f"flows/*/{ROLE_FILE}")):
            found.setdefault(path.parent.name, path.parent)
    return found


def find_role(name: str, where: str = "--role") -> Path:
    """The folder of a role, by name or path; `where` is what the name was given as.

    Raises InputError with the nearest names.
    """
    if (Path(name).expanduser() / ROLE_FILE).is_file():
        return Path(name).expanduser()
    known = role_folders()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    raise InputError(f"no role {name!r} and no folder with a {ROLE_FILE}; {hint}", where)


def read_role(folder: Path) -> Role:
    """The role of a folder. Raises InputError naming file and line or key."""
    about = _mapping(folder / ROLE_FILE)
    scenarios = [_scenario(path) for path in _scenario_folders(folder)]
    if not scenarios:
        raise InputError(f"a role needs a folder with a {SCENARIO_FILE}", str(folder))
    cross = folder / CROSS
    found = {
        "id": folder.resolve().name if folder.name in ("", "..") else folder.name,
        "scenarios": scenarios,
        "cross_profiles": _profiles(cross),
        "cross_sessions": _sessions(cross),
    }
    whole = _whole(found, about, folder / ROLE_FILE)
    role = _valid(_ROLE, whole, folder / ROLE_FILE, found)
    _check_references(role, folder)
    return role


def load_backend(folder: Path) -> Callable[[], StatefulBackend]:
    """The class `Backend` of a role's backend.py. This runs the file: it is code of the role.

    Raises InputError when there is none or it cannot be imported.
    """
    path = folder / BACKEND_FILE
    if not path.is_file():
        raise InputError(f"a role needs a {BACKEND_FILE} to run sessions", str(folder))
    name = f"agenteval_backend_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also a script that calls sys.exit
        sys.modules.pop(name, None)
        told = f"cannot be imported ({type(error).__name__}: {error})"
        raise InputError(told, str(path)) from error
    found = getattr(module, "Backend", None)
    if not isinstance(found, type):
        raise InputError("there is no class Backend", str(path))
    return found


def fresh_backend(make_backend: Callable[[], StatefulBackend]) -> StatefulBackend:
    """One in its first state. Raises InputError naming the file: it cannot be made, or has none."""
    where = _file_of(make_backend)
    try:
        machine = make_backend()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also one that calls sys.exit
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"the backend of the role cannot be made: {reason}", where) from error
    try:
        _ = machine.state
    except AttributeError as error:
        reason = "the backend has no `state`: set self.state, a dict, in __init__"
        raise InputError(reason, where) from error
    except Exception as error:  # a property may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"the state of the backend cannot be read: {reason}", where) from error
    return machine


def _file_of(make_backend: Callable[[], StatefulBackend]) -> str:
    try:
        return inspect.getfile(make_backend)
    except (TypeError, OSError):  # written in no file
        return BACKEND_FILE


def backend_sha256(folder: Path) -> str:
    """Content hash (hex) of backend.py."""
    return hashlib.sha256((folder / BACKEND_FILE).read_bytes()).hexdigest()


def _scenario_folders(folder: Path) -> list[Path]:
    """Those of the scenarios. A folder with a part of one is a scenario that lacks its file."""
    parts = (SCENARIO_FILE, _TOOLS_FILE, *_FILES.values())
    found = []
    for path in _visible(folder):
        if any((path / part).exists() for part in parts):
            if path.name == CROSS:
                raise InputError(f"no scenario can be called {CROSS!r}", str(path))
            found.append(path)
    return found


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, sorted, without hidden files, which editors and systems leave there."""
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"cannot read ({error.strerror})", str(folder)) from error


def _whole(found: dict[str, Any], about: Mapping[str, JsonValue], path: Path) -> dict[str, Any]:
    """Both together: what a file says of itself cannot be what other files hold."""
    doubled = next((key for key in about if key in found), None)
    if doubled is not None:
        raise InputError(f"{doubled} cannot stand here: it follows from the folder", str(path))
    return {**found, **about}


def _scenario(folder: Path) -> Scenario:
    about = _mapping(folder / SCENARIO_FILE)
    texts = {key: read_text(folder / name) for key, name in _FILES.items()}
    found = {
        "id": folder.name,
        **texts,
        "tools": read_tools(folder / _TOOLS_FILE),
        "profiles": _profiles(folder),
        "sessions": _sessions(folder),
    }
    whole = _whole(found, about, folder / SCENARIO_FILE)
    return _valid(_SCENARIO, whole, folder / SCENARIO_FILE, found)


def read_tools(path: Path) -> tuple[WorkflowTool, ...]:
    """The tools of a tools.json. Raises InputError naming file and key."""
    data = decode(read_text(path), str(path))
    tools = _valid(_TOOLS, data, path)
    for tool in tools:
        for what, schema in (("parameters", tool.parameters), ("returns", tool.returns)):
            problem = schema_problem(schema)
            if problem:
                raise InputError(f"{tool.name}.{what} {problem}", str(path))
    return tools


def _profiles(folder: Path) -> tuple[Profile, ...]:
    path = folder / _PROFILES_FILE
    _not_short(path.with_suffix(".yml"))
    if not path.exists():
        return ()
    return _valid(_PROFILES, _yaml(path), path)


def _sessions(folder: Path) -> tuple[RecordedSession, ...]:
    found = []
    for path in _visible(folder / "sessions"):
        _not_short(path)
        if path.suffix == ".yaml":
            found.append(_valid(_SESSION, _mapping(path), path))
    return tuple(found)


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
    _check_tools(role, folder)
    for group, profiles, sessions in [
        *((s.id, s.profiles, s.sessions) for s in role.scenarios),
        (CROSS, role.cross_profiles, role.cross_sessions),
    ]:
        where = folder / group / _PROFILES_FILE
        _once((p.id for p in profiles), "profile", where)
        _once((s.id for s in sessions), "session", folder / group / "sessions")
        for profile in profiles:
            for name in profile.scenarios:
                _known(name, known, f"{profile.id}: no scenario", where)
            tools = {t.name for t in role.tools_of(profile.scenarios)}
            for action in profile.actions:
                _known(action.tool, tools, f"{profile.id}: no tool", where)
        ids = {p.id for p in profiles}
        for session in sessions:
            at = folder / group / "sessions"
            _known(session.profile, ids, f"{session.id}: no profile", at)


def _check_tools(role: Role, folder: Path) -> None:
    first: dict[str, tuple[str, WorkflowTool]] = {}
    for scenario in role.scenarios:
        for tool in scenario.tools:
            other, same = first.setdefault(tool.name, (scenario.id, tool))
            if same != tool or (other == scenario.id and same is not tool):
                raise InputError(
                    f"the tool {tool.name!r} is defined otherwise in {other}",
                    str(folder / scenario.id / _TOOLS_FILE),
                )


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
        place, told = (*place, unknown[0]), "unknown key"
    else:
        told = f"unknown keys {', '.join(unknown)}"
    if meant:
        verb = "is" if len(meant) == 1 else "are"
        told += f"; {verb} {', '.join(f'`{name}`' for name in meant)} meant?"
    told += f"{' ' if meant else '; '}allowed: {', '.join(allowed)}"
    left = [name for name in missing if name not in meant]
    return line(place, told + (f"; missing: {', '.join(left)}" if left else ""))


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
