"""Agents as distributed systems, in ordinary Python: scatter, gather, judge, under a budget. See docs/runtime.md."""

from headway.runtime.durable import Durable, Engine, Local, Standing
from headway.runtime.durable_dbos import DbosEngine
from headway.runtime.flow import Figures, Flow
from headway.runtime.ledger import GroupedLedger, SqliteTable
from headway.runtime.ledger_postgres import PostgresTable
from headway.runtime.memo import Ledger, Row
from headway.runtime.models import Models, Reply
from headway.runtime.pipeline import BackTo, Pipeline, back_to
from headway.runtime.progress import Progress, Said, Stage
from headway.runtime.purse import Amount, Budget, Purse
from headway.runtime.run import Again, Gathered, Lane, Paid, Run
from headway.runtime.scatter import Failure, How, Tolerant
from headway.runtime.task import Runtime, Started, Task, task

__all__ = [
    "Again",
    "Amount",
    "BackTo",
    "Budget",
    "DbosEngine",
    "Durable",
    "Engine",
    "Failure",
    "Figures",
    "Flow",
    "Gathered",
    "GroupedLedger",
    "How",
    "Lane",
    "Ledger",
    "Local",
    "Models",
    "Paid",
    "Pipeline",
    "PostgresTable",
    "Progress",
    "Purse",
    "Reply",
    "Row",
    "Run",
    "Runtime",
    "Said",
    "SqliteTable",
    "Stage",
    "Standing",
    "Started",
    "Task",
    "Tolerant",
    "back_to",
    "task",
]
