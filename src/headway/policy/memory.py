"""What identity remembers: the calls of each tenant, apart from each other, within one budget of bytes."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeVar

from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.chain import Chains
from headway.policy.handover import Passages
from headway.policy.ledger import Ledger
from headway.policy.messages import IssuedCall
from headway.policy.subagent import Prompts
from headway.policy.turn import OpenTool, Turn

Name = TypeVar("Name", SessionId, TaskId)
TURN_BYTES = 1_300
"""Memory of one call with its index entries, at most: measured with tracemalloc, see the tests."""
TOOL_BYTES = 450
"""Memory of one issued tool call without its arguments."""
PREFIX_BYTES = 132
"""Memory of one prefix of a prompt that is measured."""
TENANT_BYTES = 2_000
"""Memory of a tenant's empty indexes."""


class Tenant:
    """Everything known of one tenant. Tenants share no index, so no evidence can cross from one to another."""

    def __init__(self, ledger: Ledger, *, shared: bool = False) -> None:
        self.chains = Chains(earlier=shared)
        self.passages = Passages(ledger)
        self.prompts = Prompts(ledger)
        self.by_session: dict[SessionId, Turn] = {}
        """The latest call of each session."""
        self.by_task: dict[TaskId, Turn] = {}
        self.turns = 0


class Memory:
    """Calls by span, least recently used first; the oldest go when there is no room."""

    def __init__(self, max_bytes: int, *, shared: bool = False) -> None:
        self._max = max_bytes
        self._shared = shared
        self._turns: OrderedDict[SpanId, Turn] = OrderedDict()
        self._tenants: dict[str, Tenant] = {}
        self._ledger = Ledger()

    @property
    def bytes(self) -> int:
        """Memory accounted for."""
        return self._ledger.bytes

    def __len__(self) -> int:
        return len(self._turns)

    def tenant(self, name: str) -> Tenant:
        """The indexes of a tenant; empty ones, not yet kept, if nothing is known of it."""
        return self._tenants.get(name) or Tenant(self._ledger, shared=self._shared)

    def turn(self, span: SpanId) -> Turn | None:
        """The call with this span, if it is still remembered."""
        return self._turns.get(span)

    def add(self, turn: Turn, tenant: Tenant) -> None:
        """Remember ``turn`` among what is known of its ``tenant``, forgetting others for it."""
        before = self._turns.pop(turn.span, None)
        turn.charge = TURN_BYTES + len(turn.session) + len(turn.task) + PREFIX_BYTES * len(turn.prompt)
        self._ledger.bytes += turn.charge
        if not tenant.turns:
            self._tenants[turn.tenant] = tenant
            self._ledger.bytes += TENANT_BYTES
        tenant.turns += 1
        tenant.chains.add(turn)
        _put_latest(tenant.by_session, turn.session, turn)
        _put_latest(tenant.by_task, turn.task, turn)
        self._turns[turn.span] = turn
        if before is not None:
            self._forget(before)
        self._fit()

    def answered(self, turn: Turn, said: str, issued: Sequence[IssuedCall]) -> None:
        """Index what ``turn`` was answered: ``issued`` are the calls of its tools."""
        tenant = self._tenants[turn.tenant]
        tenant.passages.add(turn, said)
        if issued:
            for tool, call in zip(turn.tools, issued, strict=True):
                tenant.prompts.add(turn, tool, call.arguments)
                turn.charge += (taken := TOOL_BYTES + len(call.id) + len(call.name))
                self._ledger.bytes += taken
        self._fit()

    def lent(self, turn: Turn) -> None:
        """The prompt of ``turn`` is kept with a later one from now on."""
        given, turn.prompt = PREFIX_BYTES * len(turn.prompt), ()
        turn.charge -= given
        self._ledger.bytes -= given

    def told(self, turn: Turn) -> None:
        """Remember a call that another worker has told of."""
        if turn.span in self._turns:
            return
        tenant = self.tenant(turn.tenant)
        self.add(turn, tenant)
        for tool in turn.tools:
            turn.charge += (taken := TOOL_BYTES + len(tool.call_id) + len(tool.name))
            self._ledger.bytes += taken
            tenant.prompts.add_told(turn, tool)
        self._fit()

    def used(self, turn: Turn, tenant: Tenant, delivered: tuple[OpenTool, ...]) -> None:
        """``turn`` was useful: it is forgotten last; and those of its tools are done."""
        self._turns.move_to_end(turn.span)
        for tool in delivered:
            tool.delivered = True
            tenant.prompts.remove(tool)

    def _fit(self) -> None:
        while self._ledger.bytes > self._max:
            self._forget(self._turns.popitem(last=False)[1])

    def _forget(self, turn: Turn) -> None:
        """Take ``turn`` out of wherever it is known but by its span."""
        tenant = self._tenants[turn.tenant]
        tenant.chains.remove(turn)
        tenant.passages.remove(turn)
        for tool in turn.tools:
            tenant.prompts.remove(tool)
        if tenant.by_session.get(turn.session) is turn:
            del tenant.by_session[turn.session]
        if tenant.by_task.get(turn.task) is turn:
            del tenant.by_task[turn.task]
        self._ledger.bytes -= turn.charge
        tenant.turns -= 1
        if not tenant.turns:
            del self._tenants[turn.tenant]
            self._ledger.bytes -= TENANT_BYTES


def _put_latest(turns: dict[Name, Turn], name: Name, turn: Turn) -> None:
    """One that comes late, told by another worker, is not the latest."""
    known = turns.get(name)
    if known is None or known.opened <= turn.opened:
        turns[name] = turn
