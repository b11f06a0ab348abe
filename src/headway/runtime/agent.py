"""Agents: a model that asks for tools, is told what they came to, and goes on until it has an answer."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, overload

from msgspec import Struct, structs

from headway.core.errors import BadInputError, StoppedError
from headway.core.span import Step
from headway.runtime.answers import Form
from headway.runtime.context import RECALL, Context, Conversation, Dropped, Result, trim
from headway.runtime.models import Message, Reply
from headway.runtime.progress import Stage
from headway.runtime.run import Run, name_of
from headway.runtime.scatter import stop
from headway.runtime.spans import Timed
from headway.runtime.standstill import Standstill
from headway.runtime.tools import Tool, ToolResult, brief, decoded, refused
from headway.wire.openai import ToolCall

R = TypeVar("R")
_NAME_SHOWN: Final = 64
_REPEATED: Final = (
    "You have made just these calls before, and they came to just this. Do something else, or give your answer."
)
_LAST: Final = "This was your last call. Give your answer now, with what you have."


class Policy(Struct, frozen=True, kw_only=True):
    """How an agent goes about it.

    Raises:
        BadInputError: a number makes no sense.
    """

    iterations: int = 20
    """Model calls; before the last the model is told that it is the last."""
    max_tokens: int = 4096
    """Of each of the model's messages."""
    parallel: int = 16
    """Tool calls of one response that are under way at once."""
    standstill: int = 2
    """Turns in a row that may bring nothing new, because each call was made before with the same result: after the
    first the model is told, after the last the agent is stopped."""
    mistakes: int = 3
    """Times in a row that the model is told of an answer or of calls that cannot be used; the next stops the agent."""
    context: Context = Context()
    say: bool = False
    """Whether what the model writes is streamed to whoever watches the task."""
    enforce: bool = True
    """Whether the endpoint is asked to enforce the type of the answer (``response_format``), which few can where there
    are tools; so it is asked only where there are none. The answer is checked either way."""
    options: Mapping[str, Any] = {}
    """More fields of each request, e.g. ``temperature``."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("iterations", "max_tokens", "parallel", "standstill"):
            if getattr(self, name) < 1:
                raise BadInputError(f"Policy.{name}={getattr(self, name)} makes no sense.", fix="It is 1 or more.")
        if self.mistakes < 0:
            raise BadInputError(f"Policy.mistakes={self.mistakes} makes no sense.", fix="It is 0 or more.")


_POLICY: Final = Policy()


class Answered(Struct, Generic[R], frozen=True, kw_only=True):
    """What an agent came to."""

    value: R
    messages: tuple[Message, ...]
    """All that was said, as it was last sent, and the answer."""
    iterations: int
    """Model calls on its loop."""
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
        BadInputError: two tools have one name, or JSON cannot hold the type of the answer.
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
            BadInputError: the endpoint refused a request; with a budget in USD: the model's price is not known.
            UpstreamError: the endpoint failed.
            InDoubtError: a tool that must not act twice was under way when the task's process died.
        """
        place = run.unique(name_of(self))
        with run.timed(f"invoke_agent {self.__name__}", Step(agent=self.__name__)) as span:
            loop = _Loop(self, run.within(place, span.id), span, question)
            loop.watched = run if run.path == run.id else None
            return await loop.go()


class _Loop(Generic[R]):
    """One question to an agent."""

    def __init__(self, agent: Agent[R], run: Run, span: Timed, question: str | Sequence[Message]) -> None:
        asked = [{"role": "user", "content": question}] if isinstance(question, str) else list(question)
        system = [{"role": "system", "content": agent.system}] if agent.system else []
        self.watched: Run | None = None
        """Whose watchers are told of each turn."""
        self._agent = agent
        self._policy = agent.policy
        self._run = run
        self._span = span
        self._question = str(asked[-1].get("content"))
        self._standstill = Standstill(agent.policy.standstill)
        self._mistakes = 0
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
        reply = await self._run.chat(
            list(self._talk.messages),
            model=self._agent.model,
            tools=self._schemas,
            max_tokens=self._policy.max_tokens,
            say=self._policy.say,
            **self._more,
        )
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
        return Answered(value=value, messages=messages, iterations=turn, dropped=tuple(self._talk.dropped))

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
        match self._standstill.turn((call.name, call.arguments, result.text) for call, result in pairs):
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
        what = (
            f"{self._agent.__name__} was stopped after {turn} of {self._policy.iterations} model calls: {brief(why)}."
        )
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
        if self.watched is not None:
            self.watched.shared.feed.stage(Stage(name=self._run.stage, done=done, of=of))


def _whole(reply: Reply, max_tokens: int) -> str:
    if reply.finish_reason == "length":
        raise BadInputError(f"It was cut off at {max_tokens} tokens. Be brief.")
    return reply.text


def _told_apart(calls: Sequence[ToolCall], turn: int) -> list[ToolCall]:
    """With ids of their own, where a model gave none or one twice, and names that can be sent."""
    named: dict[str, ToolCall] = {}
    for at, call in enumerate(calls):
        mine = call.id if call.id and call.id not in named else f"call_{turn}_{at}"
        named[mine] = ToolCall(mine, brief(call.name)[:_NAME_SHOWN] or "nameless", call.arguments)
    return list(named.values())


def _fit(call: ToolCall) -> str:
    """Arguments as they can be sent again: many endpoints fail over those that are no JSON."""
    try:
        decoded(call.name, call.arguments)
    except BadInputError:
        return "{}"
    return call.arguments.strip() or "{}"
