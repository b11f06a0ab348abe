"""Agents: a model that asks for tools, is told what they came to, and goes on until it has an answer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, overload

from msgspec import Struct, structs

from headway.core.errors import BadInputError, StoppedError
from headway.core.span import Step
from headway.core.usage import Usage
from headway.runtime.answers import Form
from headway.runtime.context import RECALL, Conversation, Dropped, Result, trim
from headway.runtime.functions import name_of
from headway.runtime.models import Message, Reply
from headway.runtime.policy import Policy
from headway.runtime.progress import Feed, Stage
from headway.runtime.run import Run
from headway.runtime.scatter import stop
from headway.runtime.spans import Timed
from headway.runtime.standstill import Standstill
from headway.runtime.tools import Tool, ToolResult, brief, decoded, refused
from headway.trace.sources.digests import arguments_digest
from headway.wire.openai import ToolCall

R = TypeVar("R")
_NAME_SHOWN: Final = 64
_REPEATED: Final = (
    "You have made just these calls before, and they came to just this. Do something else, or give your answer."
)
_LAST: Final = "This was your last call. Give your answer now, with what you have."


_POLICY: Final = Policy()


class Turn(Struct, frozen=True, kw_only=True):
    """A model call on an agent's loop."""

    seconds: float
    usage: Usage
    finish_reason: str | None


class Answered(Struct, Generic[R], frozen=True, kw_only=True):
    """What an agent came to."""

    value: R
    messages: tuple[Message, ...]
    """All that was said, as it was last sent, and the answer."""
    iterations: int
    """Model calls on its loop."""
    turns: tuple[Turn, ...]
    """What each of them took, in order."""
    dropped: tuple[Dropped, ...]
    """Results of tools that were taken out of its prompts, whole."""


class Agent(Generic[R]):
    """A model with tools. It can be called like an async function of a run, and so be scattered.

    Args:
        model: its name at the endpoint.
        tools: what it may call.
        policy: how.
        answer: the type of its answers; all but ``str`` is JSON.
        check: looks at an answer and raises `BadInputError` or `ValueError` where it is not good enough; the model is
            told.
        system: what it is told first.
        name: by which its spans are known.

    Raises:
        BadInputError: something is no tool, two tools have one name, or JSON cannot hold the type of the answer.
    """

    @overload
    def __init__(
        self: "Agent[str]",
        model: str,
        tools: Sequence[Tool] = (),
        policy: Policy = ...,
        *,
        check: Callable[[str], object] | None = None,
        system: str = "",
        name: str = "agent",
    ) -> None: ...

    @overload
    def __init__(
        self,
        model: str,
        tools: Sequence[Tool] = (),
        policy: Policy = ...,
        *,
        answer: type[R],
        check: Callable[[R], object] | None = None,
        system: str = "",
        name: str = "agent",
    ) -> None: ...

    def __init__(
        self,
        model: str,
        tools: Sequence[Tool] = (),
        policy: Policy = _POLICY,
        *,
        answer: Any = str,
        check: Callable[[Any], object] | None = None,
        system: str = "",
        name: str = "agent",
    ) -> None:
        if strange := [tool for tool in tools if not isinstance(tool, Tool)]:  # pyright: ignore[reportUnnecessaryIsInstance] - not all check types
            raise BadInputError(f"{name}: {strange[0]!r} is no tool.", fix="Write @tool above the function.")
        names = [tool.name for tool in tools]
        for tool in names:
            if names.count(tool) > 1 or tool == RECALL:
                raise BadInputError(
                    f"{name} has two tools called {tool!r}.", fix=f"Rename one; {RECALL!r} is the agent's own."
                )
        self.__name__ = name
        self.model = model
        self.tools = tuple(tools)
        self.policy = policy
        self.form: Form[R] = Form(answer, check)
        self.system = "\n\n".join(text for text in (system, self.form.told) if text)

    async def __call__(self, run: Run, question: str | Sequence[Message]) -> R:
        """Its answer: as `ask`, without how it came to it."""
        return (await self.ask(run, question)).value

    async def ask(self, run: Run, question: str | Sequence[Message]) -> Answered[R]:
        """Let it work until it has an answer.

        Args:
            run: whose work it is.
            question: what it is asked; or a conversation, without a system message, that ends with the question.

        Raises:
            StoppedError: it was stopped before it had an answer, and says why.
            OverBudgetError: the budget does not hold its next call.
            BadInputError: there is no question, the endpoint refused a request, or with a budget in USD the model's
                price is not known.
            UpstreamError: the endpoint failed.
            InDoubtError: a tool that must not act twice was under way when the task's process died.
        """
        place = run.unique(name_of(self))
        with run.timed(f"invoke_agent {self.__name__}", Step(agent=self.__name__)) as span:
            watched = run.shared.feed if run.path == run.id else None
            return await _Loop(self, run.within(place, span.id), span, question, watched).go()


class _Loop(Generic[R]):
    """One question to an agent; ``watched`` is told of each turn."""

    def __init__(
        self, agent: Agent[R], run: Run, span: Timed, question: str | Sequence[Message], watched: Feed | None
    ) -> None:
        asked = [{"role": "user", "content": question}] if isinstance(question, str) else list(question)
        system = [{"role": "system", "content": agent.system}] if agent.system else []
        if not asked:
            raise BadInputError(f"{agent.__name__} is asked nothing.", fix="Give it a question.")
        self._agent = agent
        self._policy = agent.policy
        self._run = run
        self._span = span
        self._watched = watched
        self._question = str(asked[-1].get("content"))
        self._standstill = Standstill(agent.policy.standstill)
        self._mistakes = 0
        self._turns: list[Turn] = []
        self._withheld = (0, 0)
        tools = [tool.schema for tool in agent.tools]
        self._talk = Conversation([*system, *asked], tools, agent.policy.context)
        recall = [self._talk.recall()] if tools else []
        self._tools = {tool.name: tool for tool in [*agent.tools, *recall]}
        self._schemas = [tool.schema for tool in self._tools.values()]
        self._more = dict(agent.policy.options)
        if agent.policy.enforce and not tools:
            self._more = agent.form.options | self._more

    async def go(self) -> Answered[R]:
        most = self._policy.iterations
        for turn in range(1, most + 1):
            self._tell(turn - 1, None)
            if turn == most and turn > 1:
                self._talk.note(_LAST)
            reply = await self._reply(turn)
            if reply.tool_calls:
                await self._called(turn, reply)
                continue
            answer = self._answer(turn, reply)
            if answer is not None:
                self._tell(turn, turn)
                return answer
        raise self._stopped("iterations", most, "it had no answer", "Raise Policy.iterations, or ask for less.")

    async def _reply(self, turn: int) -> Reply:
        context = self._policy.context
        question = self._question if context.summarise else None
        await trim(self._run, self._talk, turn, model=self._agent.model, question=question)
        self._remark(turn)
        now = self._run.shared.spans.clock.now
        begun = now()
        reply = await self._run.chat(
            list(self._talk.messages),
            model=self._agent.model,
            tools=self._schemas,
            max_tokens=self._policy.max_tokens,
            say=self._policy.say,
            **self._more,
        )
        self._turns.append(Turn(seconds=now() - begun, usage=reply.usage, finish_reason=reply.finish_reason))
        self._talk.answered(reply.usage.input_tokens)
        return reply

    def _answer(self, turn: int, reply: Reply) -> Answered[R] | None:
        """The answer, if it can be used; else the model is told why it cannot."""
        try:
            value = self._agent.form.read(_whole(reply, self._policy.max_tokens))
        except BadInputError as error:
            if reply.text.strip():
                self._talk.add({"role": "assistant", "content": brief(reply.text)})
            self._talk.add({"role": "user", "content": f"[Your answer cannot be used. {brief(str(error))}]"})
            self._mistake(turn, f"its answer could not be used: {error}")
            return None
        messages = (*self._talk.messages, reply.message)
        return Answered(
            value=value,
            messages=messages,
            iterations=turn,
            turns=tuple(self._turns),
            dropped=tuple(self._talk.dropped),
        )

    async def _called(self, turn: int, reply: Reply) -> None:
        calls = _told_apart(reply.tool_calls, turn)
        spelled = tuple(structs.replace(call, arguments=_fit(call)) for call in calls)
        self._talk.add(structs.replace(reply, tool_calls=spelled).message)
        results = await self._use(turn, calls)
        pairs = list(zip(calls, results, strict=True))
        self._talk.add_results([Result(call.id, call.name, result.text) for call, result in pairs], turn)
        if all(result.refused for result in results):
            self._mistake(turn, f"its calls could not be made: {results[0].text}")
        else:
            self._mistakes = 0
        match self._standstill.turn((call.name, _meant(call, result), result.text) for call, result in pairs):
            case "new":
                pass
            case "repeated":
                self._talk.note(_REPEATED)
            case "stuck":
                names = ", ".join(dict.fromkeys(call.name for call in calls))
                why = f"it made calls again that it had made before, with the same results ({names})"
                raise self._stopped("standstill", turn, why, "Look at its messages for what it lacks.")

    async def _use(self, turn: int, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Results in the order of the calls; those on one resource are made one after the other."""
        chains: dict[int | str, list[int]] = {}
        for at, call in enumerate(calls):
            tool = self._tools.get(call.name)
            on = None if tool is None else tool.works_on(call.arguments)
            chains.setdefault(at if on is None else on, []).append(at)
        results: dict[int, ToolResult] = {}
        room = asyncio.Semaphore(self._policy.parallel)

        async def make(chain: list[int]) -> None:
            for at in chain:
                async with room:
                    results[at] = await self._one(turn, at, calls[at])

        tasks = {asyncio.create_task(make(chain)) for chain in chains.values()}
        try:
            await asyncio.gather(*tasks)
        finally:
            await stop(tasks, self._agent.__name__)
        return [results[at] for at in range(len(calls))]

    async def _one(self, turn: int, at: int, call: ToolCall) -> ToolResult:
        run = self._run.within(f"{turn}.{at}", self._run.span)
        if call.name not in self._tools:
            there = ", ".join(self._tools) or "none"
            return refused(run, call.name, f"There is no tool {call.name!r}. There are: {there}.", call.id)
        return await self._tools[call.name].use(run, call.arguments, call_id=call.id)

    def _mistake(self, turn: int, why: str) -> None:
        self._mistakes += 1
        if self._mistakes > self._policy.mistakes:
            raise self._stopped("mistakes", turn, why, "Use a better model, a simpler type or more Policy.mistakes.")

    def _stopped(
        self, reason: Literal["iterations", "standstill", "mistakes"], turn: int, why: str, fix: str
    ) -> StoppedError:
        calls = f"{turn} of {self._policy.iterations} model calls"
        what = f"{self._agent.__name__} was stopped after {calls}: {brief(why.rstrip('. '))}."
        return StoppedError(what, fix=fix, reason=reason, messages=tuple(self._talk.messages))

    def _remark(self, turn: int) -> None:
        """Record what the model no longer sees."""
        before, self._withheld = self._withheld, (self._talk.cut, self._talk.taken_out)
        for now, then, how in zip(self._withheld, before, ("cut to fit into", "taken out of"), strict=True):
            if now > then:
                whose = self._agent.__name__
                told = f"Before call {turn} of {whose}, {now - then} results of tools were {how} its prompt."
                self._span.remarks += (told,)

    def _tell(self, done: int, of: int | None) -> None:
        if self._watched is not None:
            self._watched.stage(Stage(name=self._run.stage, done=done, of=of))


def _whole(reply: Reply, max_tokens: int) -> str:
    if reply.finish_reason == "length":
        raise BadInputError(f"It was cut off at {max_tokens} tokens. Be brief.")
    return reply.text


def _told_apart(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """With ids of their own, where a model gave none or one twice, and names that can be sent."""
    named: dict[str, ToolCall] = {}
    for at, call in enumerate(calls):
        mine = call.id
        while not mine or mine in named:
            mine = f"{mine or 'call'}_{turn}_{at}"
        named[mine] = ToolCall(mine, brief(call.name)[:_NAME_SHOWN] or "nameless", call.arguments)
    return list(named.values())


def _meant(call: ToolCall, result: ToolResult) -> str:
    """What was asked, however it was spelled."""
    return call.arguments if result.refused else arguments_digest(call.arguments)


def _fit(call: ToolCall) -> str:
    """Arguments as they can be sent again: many endpoints fail over those that are no JSON."""
    try:
        decoded(call.name, call.arguments)
    except BadInputError:
        return "{}"
    return call.arguments.strip() or "{}"
