"""Page 5 of the viewer: the evidence of the verifier as pictures, linked to the runs behind it."""

from __future__ import annotations

import time
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response

from agenteval.errors import InputError
from agenteval.records.verification import VerifiedSet
from agenteval.reporting import plots
from agenteval.reporting.page import (
    Answer,
    AnswerKind,
    Block,
    Fragment,
    Lines,
    Listing,
    Page,
    PageSection,
    Text,
    figures,
)
from agenteval.store.browse import criteria_by_key
from agenteval.utility.page_tables import trust_table
from agenteval.utility.tables import effects_table, evidence_by_system, evidence_table
from agenteval.view.experiments import judge_choices, judge_name, judge_of
from agenteval.view.server import Viewer, page_path, respond
