"""Agents as distributed systems, in ordinary Python: scatter, gather, judge, tools, under a budget: docs/runtime.md."""

from headway.runtime.agent import Agent, Answered
from headway.runtime.calibrate import calibrate
from headway.runtime.context import Context, Dropped
from headway.runtime.durable import Durable, Engine, Local, Standing
from headway.runtime.durable_dbos import DbosEngine
from headway.runtime.estimate import Estimate, Known
from headway.runtime.flow import Figures, Flow
from headway.runtime.ledger import GroupedLedger, SqliteTable
from headway.runtime.ledger_postgres import PostgresTable
from headway.runtime.mcp.pool import McpServers
from headway.runtime.mcp.server import McpCommand, McpEndpoint
from headway.runtime.memo import Ledger, Row
from headway.runtime.models import Models, Reply
from headway.runtime.pipeline import BackTo, Pipeline, back_to
from headway.runtime.plan import Plan, PlanStep
from headway.runtime.planner import Carried, Planner, carry_out
from headway.runtime.policy import Policy
from headway.runtime.progress import Progress, Said, Stage
from headway.runtime.purse import Amount, Budget, Purse
from headway.runtime.results import ResultCache
from headway.runtime.run import Again, Gathered, Paid, Run
from headway.runtime.scatter import Failure, How, Tolerant
from headway.runtime.shared import Lane
from headway.runtime.signature import Traits, tool
from headway.runtime.task import Runtime, Started, Task, task
from headway.runtime.tools import Purity, Tool, ToolResult

__all__ = [
    "Again",
    "Agent",
    "Amount",
    "Answered",
    "BackTo",
    "Budget",
    "Carried",
    "Context",
    "DbosEngine",
    "Dropped",
    "Durable",
    "Engine",
    "Estimate",
    "Failure",
    "Figures",
    "Flow",
    "Gathered",
    "GroupedLedger",
    "How",
    "Known",
    "Lane",
    "Ledger",
    "Local",
    "McpCommand",
    "McpEndpoint",
    "McpServers",
    "Models",
    "Paid",
    "Pipeline",
    "Plan",
    "PlanStep",
    "Planner",
    "Policy",
    "PostgresTable",
    "Progress",
    "Purity",
    "Purse",
    "Reply",
    "ResultCache",
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
    "Tool",
    "ToolResult",
    "Traits",
    "back_to",
    "calibrate",
    "carry_out",
    "task",
    "tool",
]
