"""Request features that an endpoint rejects for a model, learned from its refusals.

An `Adaptation` belongs to one endpoint and model in this process. Every step is logged once, also
when several pending requests are refused for the same reason.
"""

from __future__ import annotations

import functools
import logging
import re
from typing import Any

from agenteval.models.http_errors import ErrorBody, room_in
from agenteval.models.wire import Request, WireMessage
from agenteval.records import canonical_json

FORMS = ("json_schema", "json_object", "text")
_OTHER = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
LIMITS = _OTHER.keys()  # of a reply, in two spellings
_OPTIONAL = ("seed", "temperature", "stop", *LIMITS)
_MOST_GIVEN_UP = 2  # requests in a row; then the form itself is at fault
_LEAST_ROOM = 64  # tokens of a reply

_FORM_WORDS = re.compile(
    r"response_?[ .]?format|json[_ ]?(schema|object|mode)|structured[ _]output|guided|grammar"
    r"|\bschemas?\b"
)
# A value out of range names the parameter as well; only these words say that it is not accepted.
_NOT_TAKEN = re.compile(
    r"unsupported|(not|n't) support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|only the default|cannot find|deprecated|invalid param|extra (inputs|fields)|extra_forbidden"
    r"|not (available|accepted|implemented)|(not|n't) (accept|exist)|additional propert"
    r"|only 1(\.0)? is|only be (set to )?1\b|no such|must not be|is not a valid"
)
_RANGE = re.compile(r"maximum|minimum|between|less than|greater|above|below|at (most|least)|range")
_TOO_LARGE = re.compile(r"max(imum)?[_ ](completion_|new_|output_)?tokens|output tokens")
_SYSTEM = re.compile(
    r"system.{0,3} (role|message|prompt|instruction)|role.{0,12}system|developer instruction"
    r"|roles must alternate|only user and assistant"
)
_MALFORMED = re.compile(
    r"json_validate_failed|failed to (generate|validate) json|failed_generation"
)


@functools.cache
def adaptation(endpoint: str, model: str) -> Adaptation:
    """The one Adaptation of this process for an endpoint and model."""
    return Adaptation(endpoint)


class Adaptation:
    """Changes requests for one endpoint and model, and learns from its refusals."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._form = 0  # index of the strictest form that was not refused
        self._refused: set[str] = set()
        self._bad_schemas: set[str] = set()
        self._longest: int | None = None  # limit that is taken
        self._rooms: dict[str, int] = {}  # by request: what its prompt leaves of the context
        self._merges_system = False
        self._form_is_blameless = False
        self._tries: dict[str, int] = {}  # by request: the form it is tried in
        self._malformed: dict[str, int] = {}  # by request: failures of the JSON mode
        self._given_up = 0  # requests in a row that were answered in a simpler form only
        self._said: set[str] = set()
        self.unlimited = False  # limits of replies are left out: the model needs more to think
        self.limit_is_blameless = False  # a reply said nothing without a limit either

    def say(self, sentence: str) -> None:
        """Log a sentence, once."""
        if sentence not in self._said:
            self._said.add(sentence)
            logging.getLogger(__name__).warning("%s %s", self._endpoint, sentence)

    def form(self, request: Request) -> str:
        """How the format of the reply is requested."""
        if not request.schema:
            return "text"
        form = self._form
        if form == 0 and (
            not request.schema.get("properties")  # any object is valid: that is JSON mode
            or (self._bad_schemas and canonical_json(request.schema) in self._bad_schemas)
        ):
            form = 1
        if self._tries:
            form = max(form, self._tries.get(request.logical_hash(), 0))
        return FORMS[form]

    def parameters(self, request: Request) -> dict[str, Any]:
        """The parameters that are sent; those with the value None are not."""
        sent = {k: v for k, v in request.parameters.items() if v is not None}
        for name in self._refused & sent.keys():
            value = sent.pop(name)
            if name in LIMITS and not self._refused >= LIMITS:
                sent[_OTHER[name]] = value
        longest = self._rooms.get(request.logical_hash()) if self._rooms else None
        for limit in filter(None, (longest, self._longest)):
            sent |= {name: min(sent[name], limit) for name in LIMITS if name in sent}
        return sent

    def messages(self, request: Request) -> list[WireMessage]:
        """The messages that are sent; a system message may stand in front of the user's."""
        messages = list(request.messages)
        if not self._merges_system:
            return messages
        system = [str(m.get("content") or "") for m in messages if m["role"] == "system"]
        dialogue = [m for m in messages if m["role"] != "system"]
        first = next((m for m in dialogue if m["role"] == "user"), None)
        if first is None:
            return dialogue
        joined = {**first, "content": "\n\n".join((*system, str(first.get("content") or "")))}
        return [joined if m is first else m for m in dialogue]

    def worked(self, request: Request, form: str) -> None:
        """An answer came in this form: what was only tried is now known."""
        key = request.logical_hash() if self._tries or self._malformed else ""
        self._malformed.pop(key, None)
        tried = self._tries.pop(key, 0)
        if tried > self._form:
            self._given_up += 1
        elif form != "text":
            self._given_up = 0
        if tried > self._form and self._given_up >= _MOST_GIVEN_UP:
            refused, self._form = FORMS[self._form], tried
            self.say(f"does not take the form {refused}: asking for {FORMS[tried]}")

    def learn(self, said: ErrorBody, body: dict[str, Any], request: Request, form: str) -> bool:
        """Whether the next attempt will ask for less; False when the refusal has another reason.

        Many requests under way may be refused for the same reason, so this looks at what was sent,
        not at what another refusal has changed since.
        """
        text = said.text
        if form != "text" and _MALFORMED.search(text):  # the second time, without the form
            key = request.logical_hash()
            self._malformed[key] = self._malformed.get(key, 0) + 1
            if self._malformed[key] > 1:
                self._tries[key] = FORMS.index("text")
            return True
        if said.status < 500 and self._shortens(text, body, request):
            return True
        for name in _OPTIONAL:
            if name in body and _is_refused(name, said):
                self._refuse(name)
                return True
        roles = {message.get("role") for message in body.get("messages", ())}
        if roles >= {"system", "user"} and _SYSTEM.search(text):
            self._merges_system = True
            self.say("takes no system message: its text is put in front of the user's message")
            return True
        if form == "text" or not (said.status < 500 or _NOT_TAKEN.search(text)):
            return self._end_trial(request)
        return self._blames_form(said, request, form)

    def _shortens(self, text: str, body: dict[str, Any], request: Request) -> bool:
        """Use the limit of a reply that a refusal names."""
        name = next((name for name in LIMITS if name in body), None)
        room = room_in(text)
        if name is None or not (_TOO_LARGE.search(text) or room):
            return False
        numbers = [int(n) for n in re.findall(r"(?<![\w.,-])\d{2,7}(?![\w,-]|\.\d)", text)]
        fitting = [n for n in numbers if _LEAST_ROOM <= n < body[name]]
        limit = room if room is not None else max(fitting, default=0)
        if not _LEAST_ROOM <= limit < body[name]:
            return False
        if room is not None:
            self._rooms[request.logical_hash()] = room
            self.say("has a short context: limits of replies are set to what prompts leave of it")
            return True
        self._longest = min(limit, self._longest or limit)
        self.say(f"takes no {name} above {limit}: asking for that many")
        return True

    def _refuse(self, name: str) -> None:
        self._refused.add(name)
        instead = f"sending {_OTHER[name]} instead" if name in LIMITS else "asking without it"
        if name in LIMITS and self._refused >= LIMITS:
            self.say("takes no limit on tokens in either spelling: asking without one")
        else:
            self.say(f"does not take the parameter {name}: {instead}")

    def _blames_form(self, said: ErrorBody, request: Request, form: str) -> bool:
        following = FORMS.index(form) + 1
        if "invalid schema" in said.text and form == "json_schema":
            self._bad_schemas.add(canonical_json(request.schema))
            self.say("does not take a JSON schema of ours: asking for json_object there")
            return True
        if _FORM_WORDS.search(said.text) or said.params & {"response_format", "format"}:
            self._form = max(self._form, following)
            self.say(f"does not take the form {form}: asking for {FORMS[following]}")
            return True
        possible = said.status in (400, 415, 422, 500) or "requested param" in said.text
        if self._form_is_blameless or not possible:
            return self._end_trial(request)
        if re.search(r"\bmodel\b.*(not found|not exist|unknown|invalid)", said.text):
            return False
        self._tries[request.logical_hash()] = following
        return True

    def _end_trial(self, request: Request) -> bool:
        """Undo the trials: every form was refused, so the form was not the reason."""
        if self._tries and self._tries.pop(request.logical_hash(), 0):
            self._form_is_blameless = True
        return False


def _is_refused(name: str, said: ErrorBody) -> bool:
    pointed = name in said.params
    if not pointed and not re.search(rf"(?<![\w]){name}(?!\w)", said.text):
        return False
    return bool(_NOT_TAKEN.search(said.text)) or (pointed and not _RANGE.search(said.text))
