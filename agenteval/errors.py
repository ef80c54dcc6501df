"""Everything agenteval raises on purpose.

::

    AgentevalError                 exit code
    ├── InputError                 2   a file, key or option is wrong
    ├── ModelUnavailable           2   no such model here; the message names the alternatives
    ├── StoreError                 3   the store cannot be used, or the disk took no file
    │   ├── StoreLocked            2   another process works on the same experiment
    │   └── StoreRefused           2   no store, a newer version's, damaged, or not to be written
    ├── ReplyError                 -   a malformed reply (becomes a Failure)
    ├── BudgetExceeded             3   the cap on calls, tokens or money is reached
    └── ModelError                 3   no usable reply came
        ├── Unauthorized           3   key refused: the whole run stops at once
        ├── BadRequest             3   the endpoint refuses this request; a retry does not help
        │   └── TooLong            -   longer than the model's context (becomes a Failure)
        ├── Transient              3   temporary: 408, 409, 429, 5xx, connection
        │   └── RequestTimeout     3   no answer within the limit
        ├── OutOfTime              -   no reply in the time that the caller had left for it
        └── Filtered               -   the endpoint withheld the reply (becomes a Failure)

Any other exception is a bug: the command line ends with 70 and names a file with the traceback.

A message is one line for a person: what was wrong, where, what is allowed. Known keys and what has
the form of one are removed when the error is made.
"""

from __future__ import annotations

from typing import Any

from agenteval.text import redacted

_LONGEST = 2000  # characters of a message on bad input


class AgentevalError(Exception):
    """Base class of all errors. `exit_code` is the exit code of the command line.

    `spent` is the `records.Usage` of the attempts made before the error, set by the model client;
    it is None if nothing was sent.
    """

    exit_code = 2
    spent: Any = None

    def __init__(self, message: object = "") -> None:
        super().__init__(redacted(message))


class InputError(AgentevalError):
    """Bad input. `where` names the file with its line or key; a message of megabytes is cut."""

    def __init__(self, message: str, where: str | None = None) -> None:
        if len(message) > _LONGEST:  # a key or a value of the file is quoted in it
            message = f"{message[: _LONGEST - 300]} ... {message[-200:]}"
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class NoStoreYet(InputError):
    """There is no store at the path, or it is empty."""

    def __init__(self, path: str) -> None:
        super().__init__("no store here yet; run `agenteval quantify` first", path)


class ModelUnavailable(AgentevalError):
    """The requested model or embedder is not available on this machine."""


class StoreError(AgentevalError):
    """The store cannot be opened, read or written, or the disk is full or fails."""

    exit_code = 3


class StoreLocked(StoreError):
    """Another process works on the same experiment."""

    exit_code = 2


class StoreRefused(StoreError):
    """The file cannot be used as a store: name another one, or repair it."""

    exit_code = 2


class ReplyError(AgentevalError):
    """A model's reply is not in the requested format."""

    exit_code = 3


class BudgetExceeded(AgentevalError):
    """A cap given by the user is reached; nothing further was sent."""

    exit_code = 3


class ModelError(AgentevalError):
    """A request brought no usable reply.

    `said` is the `ErrorBody` of `models.http_errors` when an endpoint gave a reason.
    """

    exit_code = 3
    said: Any = None


class Unauthorized(ModelError):
    """The key, the account or its quota is refused, or every reply is empty; further requests would
    fail as well."""


class BadRequest(ModelError):
    """400, 404, 422: this request cannot succeed as it is."""


class TooLong(BadRequest):
    """The request is longer than the model's context; other requests may succeed."""


class Redirected(BadRequest):
    """The endpoint redirects, and redirects are not followed; a retry does not help."""


class Untrusted(BadRequest):
    """The endpoint's certificate was not accepted, or none can be checked. Nothing was sent."""


class Transient(ModelError):
    """A temporary failure. `retry_after` is the requested delay in seconds; `again` is False if the
    endpoint asks not to retry now."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        overload: bool = False,
        again: bool = True,
    ) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after = retry_after
        self.overload = overload


class RequestTimeout(Transient):
    """There was no complete answer within the time limit."""


class OutOfTime(ModelError):
    """No reply within the time that the caller gave. `lost` are the seconds of it that went to the
    queue, failed attempts and pauses, not to an attempt that was still running."""

    def __init__(self, message: str, lost: float = 0.0) -> None:
        super().__init__(message)
        self.lost = lost


class Filtered(ModelError):
    """The endpoint's content filter or the model's refusal withheld the reply."""
