"""Detect runs of failed systems from `error` and `status` of a record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agenteval.readers.fields import Context, has_field, is_missing, plain_text, snake, words
from agenteval.readers.strict_json import Notes
from agenteval.records import RunFailure

_ERROR = words("""
    error errors agent_error err error_message error_msg exception traceback failure failure_reason
""")
_STATUS = words("status state run_status exit_status status_code level")
_NO_ERROR = ("false", "0", "no", "no error", "ok", "success")
_TIMEOUT = re.compile(r"time(?:d)?[ _-]?out|deadline[ _]exceeded|total_execution_time", re.I)
_CANCELLED = re.compile(r"cancell?ed|abort(?:ed)?|interrupt(?:ed)?|killed|terminated")
_ERRORED = re.compile(
    r"(?!no_|without_|submitted)[a-z_]*(?:error|errored|exception|crash|crashed|rate_?limit(?:ed)?)"
    r"|exit_api"
)
# These may be a verdict on the answer, so they count only without an answer.
_UNFINISHED = words("incomplete pending queued running in_progress skipped")
_FAILED = words("failed failure fail")
_LONGEST = 500  # characters of a message


def failure_of(record: Mapping[str, Any], answer: str, context: Context) -> RunFailure | None:
    """Return why a record has no answer, or None if it has one.

    A status such as "error" or "timeout" always counts. An error, a status such as "failed", or a
    status code of 400 or more counts only without an answer, or if the answer is the error's text.
    """
    error = next((k for k in record if snake(k) in _ERROR and _is_error(record[k])), None)
    text = "" if error is None else _error_text(record[error])
    for key in record:
        if snake(key) in _STATUS and (failure := _by_status(key, record[key], text, answer)):
            return failure
    if error is None:
        return None
    if not answer or answer in text or text in answer[: len(text) + 20]:
        value = record[error]
        if isinstance(value, dict) and value.get("kind") in ("timeout", "cancelled", "cut_off"):
            return RunFailure(kind=value["kind"], message=text)  # the format of a serialized Run
        return _failure(text, text)
    context.notes.add(f"{error!r} is set despite an answer; the run is judged", context.place)
    return None


def is_failed(record: dict[str, Any]) -> bool:
    """Return whether a record without any output comes from a failed system."""
    no_context = Context("", Notes())
    return has_field(record, "input") and failure_of(record, "", no_context) is not None


def _by_status(key: str, value: Any, error: str, answer: str) -> RunFailure | None:
    if isinstance(value, dict):
        value = next((value[k] for k in ("code", "name", "value", "status") if k in value), None)
    message = f"{key}: {plain_text(value)}" + (f": {error}" if error else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return _failure("", message) if value >= 400 and not answer else None
    word = snake(value.rpartition(".")[2]) if isinstance(value, str) else ""
    if _TIMEOUT.search(word) and not word.startswith("submitted"):
        return RunFailure(kind="timeout", message=message[:_LONGEST])
    if _CANCELLED.fullmatch(word) or (word in _UNFINISHED and not answer):
        return RunFailure(kind="cancelled", message=message[:_LONGEST])
    if _ERRORED.fullmatch(word) or (word in _FAILED and not answer):
        return _failure(error, message)
    return None


def _failure(error: str, message: str) -> RunFailure:
    return RunFailure(
        kind="timeout" if _TIMEOUT.search(error) else "error", message=message[:_LONGEST]
    )


def _is_error(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_error(item) for item in value.values())
    if isinstance(value, str):
        return not is_missing(value) and value.strip().lower() not in _NO_ERROR
    return bool(value)


def _error_text(value: Any) -> str:
    """Return the text of an error: its type and message, or the last line of a traceback."""
    if isinstance(value, dict):
        names = ("type", "name", "code", "message", "msg", "detail")
        parts = [plain_text(value[name]) for name in names if value.get(name)]
        return ": ".join(parts) or plain_text(value)
    text = plain_text(value).strip()
    return text.splitlines()[-1] if text.startswith("Traceback") else text
