"""Tables of the store. The file is documented in docs/store.md, so any SQLite tool can read it."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

# Identifies the file in its header: PRAGMA application_id and user_version.
APPLICATION_ID = 0x61676576  # "agev"
SCHEMA_VERSION = 5

metadata = MetaData()

# compared byte by byte, as SQLite does, whatever the language of a PostgreSQL server
NAME = String().with_variant(String(collation="C"), "postgresql")

meta = Table(
    "meta",
    metadata,
    Column("key", NAME, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# Experiments, stored before their first result; `finished` when everything is stored.
experiments = Table(
    "experiments",
    metadata,
    Column("experiment_key", NAME, primary_key=True),  # hash of source and plan
    Column("source_key", NAME, nullable=False),  # registered a moment later
    Column("evaluator", NAME, nullable=False),
    Column("name", NAME, nullable=False),  # of the source
    Column("lock", NAME, nullable=False),  # held by its worker, see Store.lock
    Column("plan", Text, nullable=False),  # JSON: what is planned, as products
    Column("begun", Float, nullable=False),  # seconds since 1970, as all times here
    Column("finished", Float),
)
Index("experiments_by_source", experiments.c.source_key)

# Origin of results: a judge, an error finder, or an agent under test by one evaluator.
sources = Table(
    "sources",
    metadata,
    Column("source_key", NAME, primary_key=True),
    Column("evaluator", NAME, nullable=False),
    Column("name", NAME, nullable=False),  # of the model or agent
    Column("system_key", NAME),  # sha256 of an agent under test or finder; NULL for a judge
    Column("record", Text, nullable=False),  # Source as JSON
    Column("used", Float, nullable=False),
)

# What results are about and what they say: runs (one row for each view: what a judge saw), cases,
# traces, and criteria. The long text comes last: SQLite reads a row from the left and leaves a
# long end on its own pages.
items = Table(
    "items",
    metadata,
    Column("item_key", NAME, primary_key=True),  # sha256 of the content
    Column("kind", NAME, nullable=False),  # "run", "case" or "criterion"
    Column("id", NAME, nullable=False),
    Column("task", NAME),
    Column("system", NAME),  # that made a run; of a case, the source did the work
    Column("case_key", NAME),  # shared by runs on one input: the unit of intervals
    Column("success", Integer),  # 1, 0 or NULL
    Column("origin", NAME),  # item_key of the original, for a perturbed copy
    Column("used", Float, nullable=False),  # last registered: tells versions apart
    Column("body", Text, nullable=False),  # JSON
)

# One request of a judge, which covers several results, or one attempt of an agent, repeated ones in
# one row. An attempt has a status, a request has none. The record of an attempt is its log, which
# never changes; the verdict can be recomputed from it.
calls = Table(
    "calls",
    metadata,
    Column("call_id", NAME, primary_key=True),
    Column("source_key", NAME, ForeignKey("sources.source_key"), nullable=False),
    Column("item_key", NAME, ForeignKey("items.item_key"), nullable=False),
    Column("variant", NAME, nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("status", NAME),  # "done", or a Failure's status with a colon
    Column("outcome", NAME),  # a word of the checker
    Column("tries", Integer),  # attempts so far, failed ones included
    Column("started", Float),
    Column("ended", Float),
    Column("requests", Integer),  # these four: sums over all attempts
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("cost", Float),
    Column("check_key", NAME),  # sha256 of the checker that gave outcome and verdict
    Column("verdict", Text),  # JSON
    Column("record", Text, nullable=False),  # CallRecord, or the log of an attempt, as JSON
)
Index("calls_by_source", calls.c.source_key)
Index(
    "attempts",
    calls.c.source_key,
    calls.c.item_key,
    calls.c.repeat,
    unique=True,
    sqlite_where=text("status IS NOT NULL"),
    postgresql_where=text("status IS NOT NULL"),
)

# One rating: a Score has a value or the reason for none, a Failure has a status with a colon. Of
# an attempt there is one for each measure of its evaluator.
results = Table(
    "results",
    metadata,
    Column("source_key", NAME, ForeignKey("sources.source_key"), nullable=False),
    Column("item_key", NAME, ForeignKey("items.item_key"), nullable=False),
    Column("variant", NAME, nullable=False),
    Column("criterion_key", NAME, ForeignKey("items.item_key"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("status", NAME, nullable=False),
    Column("label", NAME),
    Column("value", Float),  # 0 (worst) to 1 (best)
    Column("tries", Integer, nullable=False),  # calls so far, this result included
    Column("attempt", Integer, nullable=False),  # content failures retried before
    Column("call_id", NAME, ForeignKey("calls.call_id"), nullable=False),
    Column("detail", Text, nullable=False),  # the rest of the Score or Failure as JSON
    PrimaryKeyConstraint("source_key", "item_key", "variant", "criterion_key", "repeat"),
)

# The last verdict on a judge, so that other commands repeat it without computing it. Stores of
# version 0.1 lack this table; it is added when the first verdict is stored.
verdicts = Table(
    "verdicts",
    metadata,
    Column("source_key", NAME, ForeignKey("sources.source_key"), nullable=False),
    Column("task", NAME, nullable=False),
    Column("made", Float, nullable=False),
    Column("verdict", NAME, nullable=False),
    Column("record", Text, nullable=False),  # VerifiedSet as JSON
    PrimaryKeyConstraint("source_key", "task"),
)

# Labels that people give in the viewer. Rows are only added: the newest of a rater on an item and a
# criterion counts, the earlier ones are its history. Tables of labels are made when the first queue
# is stored, so that a store without labels needs none.
labels = Table(
    "labels",
    metadata,
    Column("label_id", Integer, primary_key=True, autoincrement=True),
    Column("rater", NAME, nullable=False),
    Column("item_key", NAME, ForeignKey("items.item_key"), nullable=False),
    Column("criterion_key", NAME, nullable=False),  # "" for findings on a whole trace
    Column("status", NAME, nullable=False),  # scored, not_applicable, skipped, declined, withdrawn
    Column("label", NAME),
    Column("value", Float),  # 0 (worst) to 1 (best); NULL for a nominal criterion
    Column("seconds", Float),  # from showing the item to saving the label
    Column("saved", Float, nullable=False),
    Column("detail", Text, nullable=False),  # JSON: evidence, findings
)
Index("labels_by_item", labels.c.item_key, labels.c.criterion_key, labels.c.rater)

# What raters are to label: items with the weights of the sample that they were drawn by.
queues = Table(
    "queues",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("made", Float, nullable=False),
    Column("record", Text, nullable=False),  # JSON
)

# Who is labelling which item of a queue that not every rater labels.
claims = Table(
    "claims",
    metadata,
    Column("queue", NAME, nullable=False),
    Column("item_key", NAME, nullable=False),
    Column("rater", NAME, nullable=False),
    Column("claimed", Float, nullable=False),
    PrimaryKeyConstraint("queue", "item_key", "rater"),
)

# Paid replies by the hash of their request, so that nothing is paid for twice.
replies = Table(
    "replies",
    metadata,
    Column("key", NAME, primary_key=True),
    Column("reply", Text, nullable=False),  # JSON
)
