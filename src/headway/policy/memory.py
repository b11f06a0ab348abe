"""What identity remembers: the calls of each tenant, apart from each other, within one budget of bytes."""

from collections import OrderedDict
from collections.abc import Sequence

from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.chain import Chains
from headway.policy.handover import Passages
from headway.policy.messages import IssuedCall
from headway.policy.subagent import Prompts
from headway.policy.turn import OpenTool, Turn

TURN_BYTES = 1_400
"""Memory of one call with its index entries, at most: measured with tracemalloc, see the tests."""
TOOL_BYTES = 450
"""Memory of one issued tool call without its arguments."""
TENANT_BYTES = 2_000
"""Memory of a tenant's empty indexes."""


class Tenant:
    """Everything known of one tenant. Tenants share no index, so no evidence can cross from one to another."""

    def __init__(self) -> None:
        self.chains = Chains()
        self.passages = Passages()
        self.prompts = Prompts()
        self.by_session: dict[SessionId, Turn] = {}
        """The latest call of each session."""
        self.by_task: dict[TaskId, Turn] = {}
        self.turns = 0

    def add(self, turn: Turn) -> None:
        """Index ``turn`` by its history, session and task."""
        self.turns += 1
        self.chains.add(turn)
        self.by_session[turn.session] = turn
        self.by_task[turn.task] = turn

    def remove(self, turn: Turn) -> None:
        """Forget ``turn``, wherever it is known."""
        self.turns -= 1
        self.chains.remove(turn)
        self.passages.remove(turn)
        for tool in turn.tools:
            self.prompts.remove(tool)
        if self.by_session.get(turn.session) is turn:
            del self.by_session[turn.session]
        if self.by_task.get(turn.task) is turn:
            del self.by_task[turn.task]


class Memory:
    """Calls by span, least recently used first; the oldest go when there is no room."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._turns: OrderedDict[SpanId, Turn] = OrderedDict()
        self._tenants: dict[str, Tenant] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._turns)

    def tenant(self, name: str) -> Tenant:
        """The indexes of a tenant; empty ones, not yet kept, if nothing is known of it."""
        return self._tenants.get(name) or Tenant()

    def turn(self, span: SpanId) -> Turn | None:
        """The call with this span, if it is still remembered."""
        return self._turns.get(span)

    def add(self, turn: Turn) -> None:
        """Remember ``turn``, forgetting others for it."""
        if turn.span in self._turns:
            self._forget(self._turns[turn.span])
        tenant = self._tenants.get(turn.tenant)
        if tenant is None:
            tenant = self._tenants[turn.tenant] = Tenant()
            self.bytes += TENANT_BYTES
        turn.charge = TURN_BYTES + len(turn.session) + len(turn.task) + len(turn.span) + len(turn.tenant)
        tenant.add(turn)
        self._turns[turn.span] = turn
        self.bytes += turn.charge
        self._fit()

    def answered(self, turn: Turn, said: str, issued: Sequence[IssuedCall]) -> None:
        """Index what ``turn`` was answered: ``issued`` are the calls of its tools."""
        tenant, before = self._tenants[turn.tenant], turn.charge
        tenant.passages.add(turn, said)
        for tool, call in zip(turn.tools, issued, strict=True):
            tenant.prompts.add(turn, tool, call)
            turn.charge += TOOL_BYTES + len(call.id) + len(call.name) + tool.charge
        self.bytes += turn.charge - before
        self._fit()

    def used(self, turn: Turn, delivered: tuple[OpenTool, ...]) -> None:
        """``turn`` was useful: it is forgotten last; and those of its tools are done."""
        if turn.span in self._turns:
            self._turns.move_to_end(turn.span)
        for tool in delivered:
            tool.delivered = True
            turn.charge -= tool.charge
            self.bytes -= tool.charge
            self._tenants[turn.tenant].prompts.remove(tool)

    def _fit(self) -> None:
        while self.bytes > self._max:
            self._forget(next(iter(self._turns.values())))

    def _forget(self, turn: Turn) -> None:
        del self._turns[turn.span]
        tenant = self._tenants[turn.tenant]
        tenant.remove(turn)
        self.bytes -= turn.charge
        if not tenant.turns:
            del self._tenants[turn.tenant]
            self.bytes -= TENANT_BYTES
