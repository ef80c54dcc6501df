"""Leases: how several processes share the units of one experiment, in one database.

A job is one command that is carried out by several workers. Its units stand in a table of their
own; a worker leases some, renews its leases while it lives, and a result counts only as long as
the lease of its unit does: both are changed in one transaction. A lease that has run out is given
to whoever asks next, with the next epoch, by which a late result is known and refused.

These tables hold nothing that is needed later, so they are made when they are first used, and are
neither copied nor exported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import BudgetExceeded
from agenteval.store.connect import reading, store_error, writing
from agenteval.store.rows import batched
from agenteval.store.schema import NAME
from agenteval.store.writer import Writes, guarded

SECONDS = 30.0  # that a lease holds without being renewed
_DEAD = 86400.0  # seconds without a sign of life of its leader, after which a job is removed
_OPEN, _LEASED, _DONE = 0, 1, 2

_tables = MetaData()
_jobs = Table(
    "jobs",
    _tables,
    Column("job", NAME, primary_key=True),
    Column("command", Text, nullable=False),  # JSON: its words, without what is secret
    Column("package", NAME, nullable=False),  # hash of the code that began it
    Column("state", NAME, nullable=False),  # "open", "draining", "ended"
    Column("stages", Text, nullable=False),  # JSON: the plans that were begun, in their order
    Column("until", Float, nullable=False),  # its leader lives at least so long
)
_workers = Table(
    "workers",
    _tables,
    Column("worker", NAME, primary_key=True),
    Column("job", NAME, nullable=False),
    Column("about", NAME, nullable=False),  # process and host
    Column("until", Float, nullable=False),
    Column("stopped", Text),  # why it takes no further unit
    Column("counts", Text, nullable=False),  # JSON: what came of its units in the present stage
)
_units = Table(
    "units",
    _tables,
    Column("job", NAME, primary_key=True),
    Column("stage", NAME, primary_key=True),
    Column("unit", NAME, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("state", Integer, nullable=False, default=_OPEN),
    Column("worker", NAME),
    Column("epoch", Integer, nullable=False, default=0),  # how often it was leased
    Column("until", Float, nullable=False, default=0.0),
)
Index("units_by_worker", _units.c.job, _units.c.worker, _units.c.state)
Index("units_by_state", _units.c.job, _units.c.stage, _units.c.state, _units.c.position)
_caps = Table(
    "caps",
    _tables,
    Column("job", NAME, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("calls", Integer, nullable=False),  # spent before, and granted since
    Column("cost", Float, nullable=False),
)

_u = _units.c
# Done by whoever holds the lease, or by nobody.
_FINISH = guarded(
    update(_units)
    .where(
        _u.job == bindparam("its_job"), _u.stage == bindparam("its_stage"),
        _u.unit == bindparam("its_unit"), _u.worker == bindparam("its_worker"),
        _u.epoch == bindparam("its_epoch"), _u.state == _LEASED,
    )
    .values(state=_DONE)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leased:
    """A unit that was leased: its key, and how often it was."""

    unit: str
    epoch: int


@dataclass(frozen=True, slots=True)
class JobState:
    """What workers have to know of a job: whether it goes on, and which plans were begun."""

    state: str
    stages: tuple[str, ...]
    leader: bool  # alive


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker: whether it lives, why it stopped, what it counted in the present stage."""

    worker: str
    about: str
    alive: bool
    stopped: str | None
    counts: dict[str, Any]


class Job:
    """One job in a store's database. Everything raises StoreError when it cannot be had."""

    def __init__(self, engine: Engine, job: str, *, seconds: float = SECONDS) -> None:
        self.engine = engine
        self.key = job
        self.seconds = seconds
        sqlite = engine.dialect.name == "sqlite"
        clock = "(julianday('now') - 2440587.5) * 86400.0" if sqlite else (
            "extract(epoch from clock_timestamp())"
        )  # fmt: skip
        self._now: ColumnElement[float] = literal_column(clock, Float)  # one clock for all

    # -- the leader ------------------------------------------------------------------------------

    def begin(self, command: Sequence[str], package: str) -> None:
        """Make the job known; what is left of jobs whose leader is gone is removed."""
        with self._writing() as connection:
            _tables.create_all(connection)
            # a leader whose machine slept may come back: it is not taken for dead at once
            over = or_(_jobs.c.until < self._now - _DEAD, _jobs.c.state == "ended")
            gone = list(connection.execute(select(_jobs.c.job).where(over)).scalars())
            for table in (_units, _workers, _caps, _jobs):
                connection.execute(delete(table).where(table.c.job.in_(gone)))
            connection.execute(
                insert(_jobs).values(
                    job=self.key, command=json.dumps(list(command)), package=package, state="open",
                    stages="[]", until=self._now + self.seconds,
                )
            )  # fmt: skip

    def live(self) -> None:
        """The leader lives."""
        self._of_job(until=self._now + self.seconds)

    def drain(self) -> None:
        """Workers shall begin nothing more."""
        self._of_job(state="draining")

    def end(self) -> None:
        """The job is over: nothing of it is needed any more."""
        self._of_job(state="ended", until=0.0)
        with self._writing() as connection:
            for table in (_units, _caps):
                connection.execute(delete(table).where(table.c.job == self.key))

    def _of_job(self, **values: Any) -> None:
        with self._writing() as connection:
            connection.execute(update(_jobs).where(_jobs.c.job == self.key).values(values))

    def open_stage(self, stages: Sequence[str], units: Iterable[str]) -> None:
        """The last of these stages is begun, with these units."""
        for some in batched(enumerate(units), 5000):
            rows = [
                {"job": self.key, "stage": stages[-1], "unit": unit, "position": position}
                for position, unit in some
            ]
            with self._writing() as connection:
                connection.execute(insert(_units).on_conflict_do_nothing(), rows)
        self._of_job(stages=json.dumps(list(stages)))

    def release(self, worker: str) -> None:
        """Give back what a worker holds and has not done: it stopped, or is gone."""
        with self._writing() as connection:
            mine = and_(_u.job == self.key, _u.worker == worker, _u.state == _LEASED)
            connection.execute(update(_units).where(mine).values(state=_OPEN, until=0.0))
            gone = update(_workers).where(_workers.c.worker == worker)
            connection.execute(gone.values(until=0.0))

    def undone(self, stage: str) -> int:
        """How many units of a stage are not done."""
        left = and_(_u.job == self.key, _u.stage == stage, _u.state != _DONE)
        with reading(self.engine) as connection:
            query = select(func.count()).select_from(_units).where(left)
            return int(connection.execute(query).scalar_one())

    def workers(self) -> list[WorkerState]:
        """Everybody who joined, in the order of their names."""
        w = _workers.c
        query = select(
            w.worker, w.about, (w.until > self._now).label("alive"), w.stopped, w.counts
        ).where(w.job == self.key).order_by(w.worker)  # fmt: skip
        with reading(self.engine) as connection:
            return [
                WorkerState(r.worker, r.about, bool(r.alive), r.stopped, json.loads(r.counts))
                for r in connection.execute(query)
            ]

    # -- a worker --------------------------------------------------------------------------------

    def state(self) -> JobState:
        """How it stands. A job that is no longer known has ended."""
        j = _jobs.c
        query = select(j.state, j.stages, (j.until > self._now).label("alive"))
        with reading(self.engine) as connection:
            row = connection.execute(query.where(j.job == self.key)).first()
        if row is None:
            return JobState("ended", (), leader=False)
        return JobState(row.state, tuple(json.loads(row.stages)), bool(row.alive))

    def beat(
        self, worker: str, about: str, counts: Mapping[str, Any], stopped: str | None = None, *,
        renew: bool = True,
    ) -> None:  # fmt: skip
        """The worker lives; with `renew` its leases hold on."""
        until = self._now + self.seconds
        values = {"until": until, "stopped": stopped, "counts": json.dumps(counts)}
        row = {"worker": worker, "job": self.key, "about": about, **values}
        with self._writing() as connection:
            connection.execute(
                insert(_workers)
                .values(row)
                .on_conflict_do_update(index_elements=["worker"], set_=values)
            )
            if renew:
                mine = and_(_u.job == self.key, _u.worker == worker, _u.state == _LEASED)
                connection.execute(update(_units).where(mine).values(until=until))

    def lease(self, worker: str, stage: str, most: int) -> list[Leased]:
        """At most so many units that nobody holds, the first ones."""
        ours = and_(_u.job == self.key, _u.stage == stage)
        with self._writing() as connection:
            taken: list[Leased] = []
            for free in (
                and_(ours, _u.state == _LEASED, _u.until < self._now),  # of workers that are gone
                and_(ours, _u.state == _OPEN),
            ):
                query = select(_u.unit, _u.epoch).where(free).order_by(_u.position)
                for unit, epoch in connection.execute(query.limit(most - len(taken))):
                    taken.append(Leased(unit, epoch + 1))
            if taken:
                its = and_(_u.job == self.key, _u.stage == stage, _u.unit == bindparam("its_unit"))
                connection.execute(
                    update(_units).where(its).values(
                        state=_LEASED, worker=worker, epoch=bindparam("its_epoch"),
                        until=self._now + self.seconds,
                    ),
                    [{"its_unit": one.unit, "its_epoch": one.epoch} for one in taken],
                )  # fmt: skip
        return taken

    def finishing(self, worker: str, stage: str, leased: Leased) -> Writes:
        """What is to be written together with the result of a unit: that it is done. Nothing is
        written of either, and LeaseLost raised, when the lease has gone to another."""
        row = {
            "its_job": self.key, "its_stage": stage, "its_unit": leased.unit,
            "its_worker": worker, "its_epoch": leased.epoch,
        }  # fmt: skip
        return [(_FINISH, [row])]

    # -- caps --------------------------------------------------------------------------------------

    def cap(self, number: int, calls: int, cost: float) -> None:
        """What was spent before, of the `number`-th cap; who comes later changes nothing."""
        row = {"job": self.key, "number": number, "calls": calls, "cost": cost}
        with self._writing() as connection:
            connection.execute(insert(_caps).values(row).on_conflict_do_nothing())

    def grant_calls(self, number: int, most: int) -> int:
        """Calls that the caller may make further, of a cap of so many: a part of what is left,
        smaller and smaller towards the end. Raises BudgetExceeded when there are none."""
        its = and_(_caps.c.job == self.key, _caps.c.number == number)
        with self._writing() as connection:
            calls = connection.execute(select(_caps.c.calls).where(its)).scalar_one()
            if calls >= most:
                raise BudgetExceeded(f"the cap of {most} calls, of all workers, is reached")
            more = max(1, (most - calls) // 32)
            connection.execute(update(_caps).where(its).values(calls=calls + more))
        return int(more)

    def grant_cost(self, number: int, worst: float, most: float) -> float:
        """The same of money, of which one call may cost `worst`."""
        its = and_(_caps.c.job == self.key, _caps.c.number == number)
        with self._writing() as connection:
            cost = connection.execute(select(_caps.c.cost).where(its)).scalar_one()
            more = max(worst, (most - cost) / 32)
            if cost + more > most:
                raise BudgetExceeded(
                    f"the cap of {most:g}, of all workers, is reached "
                    f"({cost:.4f} spent or held, {worst:.4f} could follow)"
                )
            connection.execute(update(_caps).where(its).values(cost=cost + more))
        return float(more)

    def give_back(self, number: int, calls: int, cost: float) -> None:
        """What was granted and not spent."""
        c = _caps.c
        its = and_(c.job == self.key, c.number == number)
        with self._writing() as connection:
            connection.execute(
                update(_caps).where(its).values(calls=c.calls - calls, cost=c.cost - cost)
            )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with writing(self.engine) as connection:
                yield connection
        except SQLAlchemyError as error:
            raise store_error(error, self.engine) from error


def live_jobs(engine: Engine) -> list[tuple[str, list[str], str]]:
    """Key, command and package of the jobs that go on and whose leader lives, by key. Raises
    StoreError."""
    now = Job(engine, "")._now
    j = _jobs.c
    query = select(j.job, j.command, j.package).where(j.state == "open", j.until > now)
    try:
        with engine.connect() as connection:
            if not engine.dialect.has_table(connection, "jobs"):
                return []
            rows = connection.execute(query.order_by(j.job)).all()
    except SQLAlchemyError as error:
        raise store_error(error, engine) from error
    return [(row.job, json.loads(row.command), row.package) for row in rows]
