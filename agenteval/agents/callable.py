"""Any Python callable as an agent, plain or async.

The first argument is the text of a single request, or in conversations the messages as chat
completions take them; a `Dialogue` where it is named or annotated so.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval.agents.conversation import wire_messages
from agenteval.agents.protocol import Dialogue
from agenteval.agents.toolbox import Toolbox, is_async
from agenteval.errors import AgentevalError, InputError
from agenteval.text import did_you_mean


class AgentStopped(BaseException):
    """Raised by a tool to end a function that keeps calling after the session. It does not derive
    from Exception, so that a loop that catches every tool failure still ends.
    """


class Tools(Mapping[str, Callable[..., str]]):
    """The tools passed to the function: `tools["name"](argument=...)` returns the tool's answer.

    `specs` are the tools in the format of OpenAI's chat completions; `call(name, arguments)` takes
    names and arguments (a mapping or JSON text) as a model produced them. Each call is a turn;
    `turn()` returns the same tools for calls that one model turn requested together. An unknown
    tool is answered with a sentence and counts as a wrong call. After the end every call raises
    AgentStopped. Where tools are slow (a model-based simulator), an async function must use
    `await tools.call_async(name, arguments)`, which works with all tools.
    """

    def __init__(self, toolbox: Toolbox, turn: int | None = None) -> None:
        self._toolbox = toolbox
        self._turn = turn
        self._names = tuple(tool.name for tool in toolbox.tools)

    @property
    def specs(self) -> list[dict[str, Any]]:
        """`[{"type": "function", "function": {"name", "description", "parameters"}}, ...]`"""
        return [tool.function() for tool in self._toolbox.tools]

    def call(self, name: str, arguments: object = None) -> str:
        """Return the tool's answer, or the reason why the call was not executed."""
        return self._go_on(self._toolbox.call(name, arguments, turn=self._turn))

    async def call_async(self, name: str, arguments: object = None) -> str:
        """Like `call`, for async functions."""
        return self._go_on(await self._toolbox.call_async(name, arguments, turn=self._turn))

    def _go_on(self, answer: str) -> str:
        if self._toolbox.closed or self._toolbox.seen_enough:
            raise AgentStopped
        return answer

    def turn(self) -> Tools:
        """The same tools; calls through the returned object are simultaneous."""
        return Tools(self._toolbox, self._toolbox.turn())

    def __getitem__(self, name: str) -> Callable[..., str]:
        def tool(**arguments: object) -> str:
            return self.call(name, arguments)

        tool.__name__ = tool.__qualname__ = str(name)
        tool.__doc__ = next((t.description for t in self._toolbox.tools if t.name == name), None)
        return tool

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class CallableAgent:
    """An agent from `function(task, tools: Tools) -> str | None`.

    `task` is the text of a request, or with `dialogue` the messages of a conversation as chat
    completions take them, the instructions first; a function whose first parameter is named
    `dialogue` or annotated `Dialogue` is handed that instead. A plain function runs in a daemon
    thread, so that a timeout ends the case although the thread cannot be stopped; an async one runs
    in the event loop, which it must not block. Raises InputError for what cannot be called with two
    arguments, and in a conversation for a first parameter that is annotated `str`.
    """

    def __init__(self, function: Callable[[Any, Tools], object], *, dialogue: bool = False) -> None:
        self._name = str(getattr(function, "__qualname__", None) or type(function).__name__)
        try:
            inspect.signature(function).bind("", None)
        except TypeError as error:
            call = f"function({'messages' if dialogue else 'request'}, tools)"
            raise InputError(
                f"{self._name} cannot be called as {call}: {error}", "--agent"
            ) from error
        except ValueError:  # a builtin without a signature: only the call can show it
            if not callable(function):
                raise
        if dialogue and _first_parameter(function)[1] in (str, "str"):
            raise InputError(
                f"{self._name} takes a single request; a conversation needs"
                " function(messages, tools), where messages are those of chat completions",
                "--agent",
            )
        self._function = function

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the function's result, or "" for None. Raises what the function raises."""
        function, task, toolset = self._function, task_of(self._function, dialogue), Tools(tools)
        try:
            if is_async(function):
                answer = function(task, toolset)
            else:
                answer = await _in_thread(lambda: function(task, toolset))
            if inspect.isawaitable(answer):
                answer = await answer
        except AgentStopped:
            return ""  # the case has ended without it
        if answer is not None and not isinstance(answer, str):
            kind = type(answer).__name__
            raise AgentevalError(f"{self._name} returned {kind} instead of text or None")
        return answer or ""


class ObjectAgent:
    """An agent from an object with `async run(task, tools: Toolbox) -> str`; `task` as above."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the object's result. Raises what it raises."""
        output: str = await self._agent.run(task_of(self._agent.run, dialogue), tools)
        return output


def task_of(function: Callable[..., object], dialogue: Dialogue) -> Any:
    """Return the first argument of a function of (task, tools) for a dialogue."""
    name, annotation = _first_parameter(function)
    if name == "dialogue" or annotation in (Dialogue, "Dialogue"):
        return dialogue
    single = dialogue.instructions is None
    return dialogue.messages[-1].content if single else wire_messages(dialogue)


def _first_parameter(function: Callable[..., object]) -> tuple[str, object]:
    """Name and annotation of the first parameter; as text where it is written so."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
    except ValueError:
        return "", None
    written = first.annotation
    return first.name, written.rpartition(".")[2] if isinstance(written, str) else written


def load(reference: str, option: str = "--agent") -> Any:
    """Return the object named by `package.module:name`, also from the current folder.

    Raises InputError with the `option` when the module or the name is missing, or the module fails.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise InputError(f"{reference!r} is not of the form package.module:function", option)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
        importlib.invalidate_caches()
    try:
        member: Any = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise anything during import
        absent = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if absent and f"{module_name}.".startswith(f"{absent}."):
            where = f"neither in {Path.cwd()} nor on PYTHONPATH"
            raise InputError(f"there is no module {module_name!r}, {where}", option) from error
        reason = str(error) if absent else f"{type(error).__name__}: {error}"
        raise InputError(f"{module_name} cannot be imported: {reason}", option) from error
    for part in path.split("."):
        try:
            member = getattr(member, part)
        except AttributeError:
            hint = did_you_mean(part, [n for n in dir(member) if not n.startswith("_")])
            problem = f"{module_name} has no {path!r}" + (f"; {hint}" if hint else "")
            raise InputError(problem, option) from None
    return member


def load_function(reference: str, option: str = "--agent") -> Callable[..., Any]:
    """Like `load`, for a callable."""
    function = load(reference, option)
    if not callable(function):
        raise InputError(f"{reference} is a {type(function).__name__}, not a function", option)
    return function  # type: ignore[no-any-return]


def source_sha256(function: object) -> str | None:
    """Return the sha256 (hex) of the source file of the object's module; None without a file.
    Imports of that module are not covered.
    """
    name = getattr(function, "__module__", None) or getattr(function, "__name__", "")
    module = sys.modules.get(str(name))
    file = getattr(module, "__file__", None)
    if not file or not Path(file).is_file():
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


async def _in_thread(function: Callable[[], object]) -> object:
    """The function's value from a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: object, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(value)

    def work() -> None:
        value: object = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except (StopIteration, SystemExit) as odd:  # neither may be raised in a task
            error = AgentevalError(f"the agent left with {odd!r}")
        except BaseException as raised:  # noqa: BLE001  raised again where it is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            return  # the loop has ended: the case is over

    threading.Thread(target=work, name="agent", daemon=True).start()
    return await done
