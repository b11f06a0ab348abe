import inspect

import headway.runtime as api


def test_what_users_import_is_exactly_this() -> None:
    assert api.__all__ == [
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


def test_all_of_it_is_documented_and_typed() -> None:
    for name in api.__all__:
        thing = getattr(api, name)
        if inspect.isclass(thing) and thing.__module__.startswith("headway"):
            assert thing.__doc__
            for method, body in vars(thing).items():
                if inspect.isfunction(body) and not method.startswith("_"):
                    assert body.__doc__, f"{name}.{method}"
                    assert "return" in body.__annotations__, f"{name}.{method}"
