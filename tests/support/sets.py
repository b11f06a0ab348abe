"""A small set of tasks for the tests of the faces, worked out by hand."""

from msgspec.structs import replace
from tasks import call, step, tool

from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace.set_study import SetStudy
from headway.trace.sources.intake import Imported
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge
from headway.trace.whatif_text import WhatIf


def imported(number: int, turns: int, tools: float = 1.0, timing: Timing = "spans", name: str = "look") -> Imported:
    """``turns`` calls of 2 s, 1 of it reading 1,000 tokens each; between them a tool of ``tools`` seconds."""
    end = 2 * turns + tools * (turns - 1)
    spans = [step("root", 0, end, agent="helper")]
    at = 0.0
    for turn in range(turns):
        usage = Usage(input_tokens=1000 * (turn + 1), output_tokens=11, cache_read=1000 * turn)
        asks = (f"t{turn}",) if turn < turns - 1 else ()
        spans.append(call(f"c{turn}", at, at + 2, "root", marks=(at, at + 1, at + 2), usage=usage, asks=asks))
        if asks:
            use = tool(f"t{turn}", at + 2, at + 2 + tools, "root", by=f"c{turn}", call_id=asks[0])
            spans.append(replace(use, name=name))
        at += 2 + tools
    made = tuple(replace(span, task=TaskId(f"task-{number}")) for span in spans)
    return Imported(task=made[0].task, title="why?", spans=made, verdict=judge(made, "made", timing))


def renamed(one: Imported, task: str) -> Imported:
    """The same under another id."""
    spans = tuple(replace(span, task=TaskId(task)) for span in one.spans)
    return replace(one, task=TaskId(task), spans=spans)


def studied(*tasks: Imported, changes: tuple[WhatIf, ...] = ()) -> SetStudy:
    """Nothing in it has a price."""
    study = SetStudy(lambda _call, _at: None, changes)
    for one in tasks:
        study.add(one.spans, one.verdict, one.title)
    return study


def hostile(one: Imported, text: str) -> Imported:
    """The same with ``text`` for every name that a stranger may choose."""

    def renamed(span: Span) -> Span:
        work = replace(span.work, model=text) if isinstance(span.work, ModelCall) else span.work
        return replace(span, task=TaskId(text), name=text, work=work)

    spans = tuple(map(renamed, one.spans))
    return Imported(task=TaskId(text), title=text, spans=spans, verdict=judge(spans, text, "spans", [text]))
