"""The backend of a role (backend.py): its tools and their state."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast, get_type_hints

from pydantic import JsonValue, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agenteval.errors import AgentevalError, InputError

BACKEND_FILE = "backend.py"


class StatefulBackend(Protocol):
    """The class `Backend` of backend.py: one method for each tool, and the state. Without such a
    class the module itself is the backend: its functions and its `state`.

    A method returns a JSON value; ValueError with a message refuses the arguments. Generated
    identifiers must depend only on the arguments, so that the order of calls does not change the
    state.
    """

    state: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModuleBackend:
    """Makes backends from a module: its functions are the tools, its `state` is the state. Each
    call executes the module again."""

    path: Path

    def __call__(self) -> StatefulBackend:
        module: Any = _executed(self.path)
        return module  # type: ignore[no-any-return]


def load_backend(folder: Path) -> Callable[[], StatefulBackend]:
    """Run a role's backend.py and return its class `Backend`, or else the module if it has a
    `state`.

    Raises InputError if both are missing or the file cannot be imported.
    """
    path = folder / BACKEND_FILE
    if not path.is_file():
        raise InputError(f"a role needs a {BACKEND_FILE} to run sessions", str(folder))
    module = _executed(path)
    backend = getattr(module, "Backend", None)
    if isinstance(backend, type):
        return backend
    if backend is None and hasattr(module, "state"):
        return ModuleBackend(path)
    raise InputError("there is no class Backend, and no functions with a `state`", str(path))


def _executed(path: Path) -> ModuleType:
    name = f"agenteval_backend_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        problem = f"cannot be imported ({type(error).__name__}: {error})"
        raise InputError(problem, str(path)) from error
    return module


def tools_of_backend(folder: Path) -> list[dict[str, Any]]:
    """Return the public methods of a role's backend, or functions of its module, as tools. The
    schema of the parameters is made from their annotations (pydantic), and the description is the
    docstring. The returned value may be anything. Raises InputError for an annotation that has no
    JSON schema."""
    path = folder / BACKEND_FILE
    if not path.is_file():
        needed = f"a role needs a tools.json, or a {BACKEND_FILE} whose methods are its tools"
        raise InputError(needed, str(folder))
    make = load_backend(folder)
    backend = fresh_backend(make)
    if isinstance(make, ModuleBackend):
        members = vars(backend)
        module = members["__name__"]
        names = [n for n, f in members.items() if inspect.isfunction(f) and f.__module__ == module]
    else:
        family = reversed(type(backend).__mro__)
        names = [n for base in family for n, f in vars(base).items() if inspect.isroutine(f)]
    tools = []
    for name in dict.fromkeys(name for name in names if not name.startswith("_")):
        function = getattr(backend, name)
        try:
            plain = getattr(function, "__func__", function)
            # Pydantic does not resolve names in the annotations of a bound method.
            plain.__annotations__ = get_type_hints(plain, include_extras=True)
            parameters: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
            schema = parameters.json_schema(schema_generator=_Untitled)
        except (PydanticUserError, NameError, TypeError) as error:
            reason = f"the parameters of {name} have no JSON schema ({str(error).splitlines()[0]})"
            raise InputError(reason, str(path)) from error
        description = inspect.getdoc(function) or ""
        tools.append({"name": name, "description": description, "parameters": schema})
    if not tools:
        raise InputError("no public method can be used as a tool", str(path))
    return tools


class _Untitled(GenerateJsonSchema):
    """Generates schemas without titles, which would repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def fresh_backend(make_backend: Callable[[], StatefulBackend]) -> StatefulBackend:
    """Make a backend in its initial state. Raises InputError with the file if that fails or there
    is no state."""
    where = BACKEND_FILE
    if isinstance(make_backend, ModuleBackend):
        where = str(make_backend.path)
    else:
        with suppress(TypeError, OSError):  # written in no file
            where = inspect.getfile(make_backend)
    problem = "the backend of the role cannot be made"
    try:
        backend = make_backend()
        problem = "the state of the backend cannot be read"  # a property may raise anything
        has_state = hasattr(backend, "state")
    except (Exception, SystemExit) as error:
        raise InputError(f"{problem}: {type(error).__name__}: {error}", where) from error
    if not has_state:
        problem = "the backend has no `state`: set self.state, a dict, in __init__"
        raise InputError(problem, where)
    return backend


class BackendDefect(AgentevalError):
    """A tool of the backend cannot be called, or raised something other than ValueError; see
    `reason`."""

    def __init__(self, tool: str, problem: str, reason: str = "") -> None:
        super().__init__(f"defect of the backend: {tool} {problem}{reason}")
        self.reason = reason or problem


def call_tool(backend: StatefulBackend, tool: str, arguments: Mapping[str, Any]) -> JsonValue:
    """Call a tool of the backend with a copy of the arguments and return its result.

    Raises ValueError when the backend refuses them, and BackendDefect for anything else.
    """
    method = getattr(backend, tool, None)
    if not callable(method):
        raise BackendDefect(tool, "is not a method")
    try:
        value: JsonValue = method(**json.loads(json.dumps(arguments)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit, which must not look as if the agent had stopped
        if type(error) is ValueError:
            raise
        raise BackendDefect(tool, "raised ", f"{type(error).__name__}: {error}") from error
    if inspect.iscoroutine(value):
        value.close()
        raise BackendDefect(tool, "must be awaited")
    return value


def backend_sha256(folder: Path) -> str:
    """Content hash (hex) of backend.py."""
    return hashlib.sha256((folder / BACKEND_FILE).read_bytes()).hexdigest()
