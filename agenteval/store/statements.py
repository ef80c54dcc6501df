"""What is written to the tables, and what happens to a row that is there already."""

from __future__ import annotations

from sqlalchemy.dialects.sqlite import insert

from agenteval.store import schema

ADD_RUN = insert(schema.runs)
ADD_RUN = ADD_RUN.on_conflict_do_update(
    index_elements=["run_key"],
    # Labels may be mended later without asking a judge again.
    set_={c: ADD_RUN.excluded[c] for c in ("task", "system", "success", "used")},
)
ADD_CRITERION = insert(schema.criteria)
ADD_CRITERION = ADD_CRITERION.on_conflict_do_update(
    index_elements=["criterion_key"],
    # What does not reach the judge (provenance, expected directions) follows the last file used.
    set_={c: ADD_CRITERION.excluded[c] for c in ("record", "used")},
)
ADD_SOURCE = insert(schema.sources)
ADD_SOURCE = ADD_SOURCE.on_conflict_do_update(
    index_elements=["source_key"], set_={"used": ADD_SOURCE.excluded.used}
)
ADD_CALL = insert(schema.calls)
ADD_CELL = insert(schema.cells)
ADD_CELL = ADD_CELL.on_conflict_do_update(
    index_elements=["source_key", "run_key", "variant", "criterion_key", "repeat"],
    set_={
        **{
            c: ADD_CELL.excluded[c]
            for c in ("status", "label", "value", "detail", "attempt", "call_id")
        },
        "tries": schema.cells.c.tries + 1,
    },
    where=schema.cells.c.status.contains(":"),  # a Failure may be replaced, a Score never
)
ADD_REPLY = insert(schema.replies)
ADD_REPLY = ADD_REPLY.on_conflict_do_update(
    index_elements=["key"], set_={"reply": ADD_REPLY.excluded.reply}
)
