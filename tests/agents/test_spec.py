"""`--agent`: what each form makes and what identifies it, what is refused; the docs' examples."""

import hashlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from agenteval.agents import AgentLimits, Tool, Toolbox, drive
from agenteval.agents.process import without_secrets
from agenteval.agents.spec import AgentSettings, opened, system
from agenteval.errors import InputError

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"
KEY = "sk-canary-4471aa0b"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def box():
    return Toolbox([Tool(name="rinse"), Tool(name="dry")], lambda name, given: "done")


def test_a_function(project):
    (project / "mine.py").write_text("def work(request, tools): return ''\n")
    made = system("python:mine:work")
    assert made.name == "python:mine:work"
    assert made.parameters == {
        "adapter": "python",
        "version": 1,
        "function": "mine:work",
        "source": sha256(project / "mine.py"),
    }


async def test_a_class_is_made_anew_for_every_case(project):
    (project / "mine.py").write_text(
        "class Mine:\n"
        "    count = 0\n"
        "    async def run(self, request, tools):\n"
        "        self.count += 1\n"
        "        tools.call('rinse')\n"
        "        return str(self.count)\n"
    )
    made = system("python:mine:Mine")
    for _ in range(2):
        log = await drive(made.make(), "", box())
        assert (log.output, [e.name for e in log.events]) == ("1", ["rinse"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Mine: pass", "lacks `async def run"),
        ("class Mine:\n def run(self, request, tools): pass", "lacks `async def run"),
        (
            "class Mine:\n def __init__(self, a): pass\n async def run(self, r, t): pass",
            "cannot be made without arguments",
        ),
    ],
)
def test_a_class_that_is_no_agent(project, text, said):
    (project / "mine.py").write_text(text + "\n")
    with pytest.raises(InputError) as caught:
        system("python:mine:Mine")
    assert said in str(caught.value)


@pytest.mark.parametrize("adapter", ["command", "mcp"])
def test_a_command(project, adapter):
    (project / "agent.py").write_text("1\n")
    made = system(f"{adapter}:{sys.executable} agent.py --model 'a b'")
    assert made.name == f"{adapter}:{sys.executable} agent.py --model 'a b'"[:120]
    assert made.parameters == {
        "adapter": adapter,
        "version": 1,
        "command": [sys.executable, "agent.py", "--model", "a b"],
        "files": {
            sys.executable: sha256(Path(sys.executable)),
            "agent.py": sha256(project / "agent.py"),
        },
    }
    first = made.sha256
    (project / "agent.py").write_text("2\n")
    assert system(f"{adapter}:{sys.executable} agent.py --model 'a b'").sha256 != first


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["a", "--api-key", "abc", "b"], ["a", "--api-key", "***", "b"]),
        (["a", "--api-key=abc"], ["a", "--api-key=***"]),
        (["env", "OPENAI_API_KEY=abc", "a"], ["env", "OPENAI_API_KEY=***", "a"]),
        (["a", KEY, "--password", "p"], ["a", "***", "--password", "***"]),
        (
            ["a", "--max-tokens", "100", "--key-file=x"],
            ["a", "--max-tokens", "100", "--key-file=x"],
        ),
        (["sort", "key", "b"], ["sort", "key", "b"]),
        (["-H", "Authorization: Bearer a.b"], ["-H", "Authorization: Bearer ***"]),
        (["--at=http://u:p@host/x?y"], ["--at=http://***@host/x?y"]),
        (["github_pat_1", "eyJhbGci"], ["***", "***"]),
    ],
)
def test_keys_are_not_kept(words, shown):
    assert without_secrets(words) == shown


def test_no_key_in_a_system(project):
    made = system(f"command:env TOKEN={KEY} {sys.executable} a.py --api-key {KEY}")
    assert KEY not in repr(made)


ON_MODEL = ["openai", "responses", "react", "autogen"]


@pytest.mark.parametrize("adapter", ON_MODEL)
def test_on_a_model(project, monkeypatch, adapter):
    monkeypatch.setenv("AGENTEVAL_API_KEY", KEY)

    def made(**more):
        given = {"model": "m-1", "base_url": "http://127.0.0.1:9/v1"} | more
        return system(adapter, AgentSettings(**given))

    first = made()
    assert "m-1" in first.name
    assert first.parameters["model"] == "m-1"
    assert "127.0.0.1:9" in first.parameters["endpoint"]
    assert first.parameters["temperature"] == 0
    assert KEY not in repr(first)
    others = [
        made(model="m-2"),
        made(base_url="http://127.0.0.1:8/v1"),
        made(temperature=0.7),
        made(temperature=None),
        made(max_tokens=50),
    ]
    assert len({s.sha256 for s in (first, *others)}) == 6
    assert made(concurrency=3).sha256 == first.sha256


class Nothing:
    async def run(self, request, tools):
        return "nothing"


def test_scripted():
    scripted = {"perfect": Nothing, "random": Nothing}
    made = system("scripted:perfect", scripted=scripted)
    assert (made.name, made.parameters) == (
        "scripted:perfect",
        {"adapter": "scripted", "version": 1, "script": "perfect"},
    )
    assert isinstance(made.make(), Nothing)
    with pytest.raises(InputError, match=r"'perfekt'; did you mean perfect\?"):
        system("scripted:perfekt", scripted=scripted)
    with pytest.raises(InputError, match="known: none here"):
        system("scripted:perfect")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("opnai", "did you mean openai?"),
        ("pyton:a:b", "did you mean python?"),
        ("openai:gpt-9", "the model of openai is given with --model"),
        ("zzzzzz", "unknown agent 'zzzzzz'; the agents are"),
    ],
)
def test_unknown_agents(spec, hint):
    with pytest.raises(InputError) as caught:
        system(spec, scripted={"perfect": Nothing})
    text = str(caught.value)
    assert hint in text
    assert "openai, responses, react, autogen, python:MODULE:FUNCTION, command:CMD" in text
    assert "scripted:NAME with NAME one of perfect" in text


def examples():
    """[spec, ...] of the documentation, in order, and its files."""
    text = DOCS.read_text(encoding="utf-8").partition("\n## In a conversation")[0]
    commands = re.findall(r"^```sh\n(.*?)```", text, re.M | re.S)
    specs = [shlex.split(command)[-1] for command in commands]
    files = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)```", text, re.M | re.S))
    return specs, files


SPECS, FILES = examples()


@pytest.mark.parametrize("spec", SPECS)
async def test_the_examples_of_the_docs(project, monkeypatch, spec):
    for name, text in FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    tools = Toolbox(
        [Tool(name="rinse"), Tool(name="dry")], lambda name, given: "done", AgentLimits(seconds=60)
    )
    async with opened(spec) as made:
        log = await drive(made.make(), "Rinse, then dry.", tools)
    assert (log.ending, log.output) == ("finished", "All done."), log
    assert [(e.name, e.status) for e in log.events] == [("rinse", "ok"), ("dry", "ok")]


def test_the_docs_hold_an_example_of_every_adapter():
    assert {spec.partition(":")[0] for spec in SPECS} == {"python", "command", "mcp"}
    assert len(FILES) == len(SPECS) == 4
    text = DOCS.read_text(encoding="utf-8")
    with pytest.raises(InputError) as caught:
        system("zzzzzz")
    for form in str(caught.value).split("are: ")[1].split(", "):
        assert f"| `{form}` |" in text
