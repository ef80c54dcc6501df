"""Tables of the store. The file is documented in docs/store.md, so any SQLite tool can read it."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

# What the file is, told by its header: PRAGMA application_id and user_version.
APPLICATION_ID = 0x61676576  # "agev"
SCHEMA_VERSION = 4

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# One row per view of a run: what a judge saw, and what analysis needs to know of the run.
runs = Table(
    "runs",
    metadata,
    Column("run_key", String, primary_key=True),  # sha256 of the view
    Column("run_id", String, nullable=False),
    Column("task", String, nullable=False),
    Column("system", String, nullable=False),
    Column("case_key", String, nullable=False),  # sha256 of the input: runs on one case share it
    Column("success", Integer),  # 1, 0 or NULL
    Column("problem", Text, nullable=False),
    Column("trajectory", Text, nullable=False),
    Column("reference_shown", Integer, nullable=False),
    Column("used", Float, nullable=False),  # last registered, seconds since 1970: tells versions
    Column("origin", String),  # run_key of the original, for a perturbed copy
)

criteria = Table(
    "criteria",
    metadata,
    Column("criterion_key", String, primary_key=True),
    Column("criterion_id", String, nullable=False),
    Column("record", Text, nullable=False),  # Criterion as JSON
    Column("used", Float, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("source_key", String, primary_key=True),
    Column("evaluator", String, nullable=False),
    Column("model", String, nullable=False),
    Column("record", Text, nullable=False),  # Source as JSON
    Column("used", Float, nullable=False),
)

# One request (or one embedded computation) and what it took; it covers several cells.
calls = Table(
    "calls",
    metadata,
    Column("call_id", String, primary_key=True),
    Column("run_key", String, ForeignKey("runs.run_key"), nullable=False),
    Column("variant", String, nullable=False),
    Column("source_key", String, ForeignKey("sources.source_key"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("record", Text, nullable=False),  # CallRecord as JSON
    Column("requests", Integer, nullable=False),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("cost", Float),
)
Index("calls_by_source", calls.c.source_key)

# One result. A Score has a value or says why it has none; a Failure has a status with a colon.
cells = Table(
    "cells",
    metadata,
    Column("run_key", String, ForeignKey("runs.run_key"), nullable=False),
    Column("variant", String, nullable=False),
    Column("criterion_key", String, ForeignKey("criteria.criterion_key"), nullable=False),
    Column("source_key", String, ForeignKey("sources.source_key"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("status", String, nullable=False),
    Column("label", String),
    Column("value", Float),
    Column("detail", Text, nullable=False),  # the rest of the Score or Failure as JSON
    Column("tries", Integer, nullable=False, default=1),  # calls so far, this result included
    Column("attempt", Integer, nullable=False, default=0),  # content failures asked anew before
    Column("call_id", String, ForeignKey("calls.call_id"), nullable=False),
    PrimaryKeyConstraint("source_key", "run_key", "variant", "criterion_key", "repeat"),
)

# Paid replies by the hash of their request, so that nothing is paid for twice.
replies = Table(
    "replies",
    metadata,
    Column("key", String, primary_key=True),
    Column("reply", Text, nullable=False),  # JSON
)

# A test case of an evaluator that puts agents to work (planning, workflows).
cases = Table(
    "cases",
    metadata,
    Column("evaluator", String, nullable=False),
    Column("case_key", String, nullable=False),  # sha256 of the case, whatever suite it stands in
    Column("case_id", String, nullable=False),
    Column("body", Text, nullable=False),  # the case as JSON
    PrimaryKeyConstraint("evaluator", "case_key"),
)

systems = Table(
    "systems",
    metadata,
    Column("system_key", String, primary_key=True),  # sha256 of the agent under test
    Column("name", String, nullable=False),
    Column("parameters", Text, nullable=False),  # JSON
)

# One attempt of one agent at one case. The log is what happened, for good; the verdict beside it
# can be made again from the log. What is small stands before the log: SQLite reads a row from the
# left and leaves a long log on its own pages.
trials = Table(
    "trials",
    metadata,
    Column("evaluator", String, nullable=False),
    Column("system_key", String, ForeignKey("systems.system_key"), nullable=False),
    Column("case_key", String, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("case_id", String, nullable=False),
    Column("status", String, nullable=False),  # "done", or a Failure's status with a colon
    Column("outcome", String),
    Column("check_key", String),  # sha256 of the checker that gave outcome and verdict
    Column("tries", Integer, nullable=False),  # attempts so far, failed ones included
    Column("started", Float),  # seconds since 1970, of the last attempt
    Column("ended", Float),
    Column("requests", Integer),  # these four: sums over all attempts
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("cost", Float),
    Column("verdict", Text),  # JSON
    Column("log", Text, nullable=False),  # JSON
    PrimaryKeyConstraint("evaluator", "system_key", "case_key", "trial"),
    ForeignKeyConstraint(["evaluator", "case_key"], ["cases.evaluator", "cases.case_key"]),
)
