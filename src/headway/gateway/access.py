"""Who is calling, and may they? Answers out of memory; the registry is read when it has changed."""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from headway.core.access import Action, AuditRecord, Caller, Key, TenantId, may
from headway.core.clock import Clock
from headway.core.errors import StoreError
from headway.gateway.credentials import secret_of
from headway.gateway.registry import Admitted, Registry, digest_of
from headway.gateway.responses import Failure, failure
from headway.policy.guard import Guard
from headway.policy.limits.refused import Refused

_log = logging.getLogger(__name__)
_REFRESH_SECONDS: Final = 1.0
"""How long a revoked key may go on, and how old the audit's newest record may be."""
_KINDS: Final = 10_000
"""Different refusals kept between two writes; beyond, they are counted together."""
_AUDIT_RECORDS: Final = 1_000_000
_MODEL_SHOWN: Final = 100
_LONG_WAIT: Final = 60.0
"""Seconds; beyond, clients are told not to try again by themselves."""


class Access:
    """Recognises callers and says what they may do; what it refuses goes to the audit.

    Args:
        registry: keys, tenants and audit; closed with this.
        clock: seconds that never run backwards, for the guard.
        wall: epoch seconds, for keys that expire and for the audit.
    """

    def __init__(self, registry: Registry, clock: Clock, *, wall: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._clock = clock
        self._wall = wall
        self._guard = Guard()
        self._admitted: dict[bytes, Admitted] = {}
        self._version = -1
        self._refusals: dict[tuple[str, str, str, str], AuditRecord] = {}
        self._changes: list[AuditRecord] = []
        self._refreshing = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._trouble = False

    # --- life

    async def start(self) -> None:
        """Read the registry, and keep up with it.

        Raises:
            StoreError: it cannot be read.
        """
        await asyncio.to_thread(self._refresh)
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write what is still to be written, and close the registry."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        try:
            await asyncio.to_thread(self._write, [*self._changes, *self._refusals.values()])
        except StoreError as error:
            _log.error("audit: what was refused last is not recorded: %s", error)
        self._registry.close()

    async def refreshed(self) -> None:
        """Write what was refused, and take over what was changed: done every second by itself."""
        async with self._refreshing:  # else one that read first could be the last to take over
            changes, refusals = self._changes, self._refusals
            self._changes, self._refusals = [], {}
            try:
                await asyncio.to_thread(self._write, [*changes, *refusals.values()])
                await asyncio.to_thread(self._refresh)
            except StoreError as error:
                self._changes[:0] = changes
                for record in refusals.values():
                    self._note(record.action, record.actor, record.subject, record.tenant, record.detail, record.count)
                if not self._trouble:
                    _log.error("keys: %s Until then keys stay as they were.", error)
                self._trouble = True
            else:
                self._trouble = False

    async def audit(self, record: AuditRecord) -> None:
        """Write down a change that was made; where that cannot be done now, it is as soon as it can."""
        self._changes.append(record)
        await self.refreshed()

    # --- calls

    def recognise(self, fields: dict[bytes, bytes], address: str) -> Caller | Failure:
        """Who sends these headers, from this address.

        The secret is looked up by its digest, so what a wrong one is compared with cannot be chosen, and the digests
        are then compared in constant time.
        """
        secret = secret_of(fields)
        if secret is None:
            return _unknown("This gateway asks for a key, and the request has none.")
        digest = digest_of(secret)
        admitted = self._admitted.get(digest)
        if admitted is None or not hmac.compare_digest(admitted.digest, digest):
            return self._wrong(address)
        caller, wall = admitted.caller, self._wall()
        key = caller.key
        if (admitted.until is not None and wall >= admitted.until) or (key.expires is not None and wall >= key.expires):
            return self._denied(caller, "key.expired", key.id, _unknown(f"The key {key.id} has expired."))
        if key.disabled:
            return self._denied(caller, "key.revoked", key.id, _unknown(f"The key {key.id} was revoked."))
        if caller.tenant.disabled:
            problem = failure("tenant_disabled", 403, f"The tenant {caller.tenant.id} is switched off.")
            return self._denied(caller, "tenant.disabled", caller.tenant.id, problem)
        return caller

    def known(self, fields: dict[bytes, bytes]) -> Caller | None:
        """Who sends these headers, where nothing hangs on it and nobody is told; ``None``: nobody who is known."""
        secret = secret_of(fields)
        admitted = None if secret is None else self._admitted.get(digest_of(secret))
        return None if admitted is None or admitted.caller.key.disabled else admitted.caller

    def keys_of(self, tenant: TenantId) -> list[Key]:
        """The tenant's keys, as far as they open anything."""
        callers = [one.caller for one in self._admitted.values() if one.caller.tenant.id == tenant]
        return sorted({caller.key.id: caller.key for caller in callers}.values(), key=lambda key: key.id)

    def forbidden(self, caller: Caller, action: Action) -> Failure | None:
        """Why the caller may not do this; ``None``: they may."""
        key = caller.key
        if may(key.role, action):
            return None
        message = f"The key {key.id} has the role {key.role}, which does not allow this. Use a key with another role."
        return self._denied(caller, f"{action}.denied", key.id, failure("not_allowed", 403, message))

    def forbidden_model(self, caller: Caller, model: str) -> Failure | None:
        """Why the caller may not call this model; ``None``: they may."""
        if not may(caller.key.role, "call"):
            return self.forbidden(caller, "call")
        if caller.may_call(model):
            return None
        key, tenant = caller.key, caller.tenant
        allowed = [one for one in key.models or tenant.models if caller.may_call(one)]
        shown = model[:_MODEL_SHOWN]
        message = f"The key {key.id} may not call the model {shown!r}. It may call: {', '.join(allowed) or 'none'}."
        return self._denied(caller, "call.denied", shown, failure("model_not_allowed", 403, message))

    def limited(self, caller: Caller, refused: Refused) -> Failure:
        """What a caller is told whom a limit stops."""
        headers: list[tuple[bytes, bytes]] = []
        if refused.seconds is not None:
            headers.append((b"retry-after", b"%d" % refused.seconds))
        if refused.wait is None or refused.wait > _LONG_WAIT:
            headers.append((b"x-should-retry", b"false"))
        name = "price_unknown" if refused.why == "price_unknown" else f"{refused.measure}_limit"
        problem = failure(name, 429, refused.told(), *headers)
        return self._denied(caller, "call.limited", refused.counter, problem, refused.told())

    # --- inside

    def _wrong(self, address: str) -> Failure:
        verdict = self._guard.wrong(address, self._clock.now())
        if verdict.record:
            self._note("key.unknown", address, "", "", count=verdict.record)
        if verdict.answer == "unknown":
            return _unknown("The key is not known here.")
        seconds = int(verdict.wait) + 1
        message = f"Too many unknown keys came from your address. Try again in {seconds} s, with a key that is known."
        return failure("too_many_unknown_keys", 429, message, (b"retry-after", b"%d" % seconds))

    def _denied(self, caller: Caller, action: str, subject: str, problem: Failure, detail: str = "") -> Failure:
        self._note(action, caller.key.id, subject, caller.tenant.id, detail)
        return problem

    def _note(self, action: str, actor: str, subject: str, tenant: str, detail: str = "", count: int = 1) -> None:
        kind = (action, actor, subject, tenant)
        known = self._refusals.get(kind)
        if known is not None:
            self._refusals[kind] = msgspec.structs.replace(known, count=known.count + count)
            return
        if len(self._refusals) >= _KINDS:
            kind = ("audit.overflow", "", "", "")
            known = self._refusals.get(kind)
            action, actor, subject, tenant = kind
            detail, count = "refusals of too many kinds to be kept apart", 1 if known is None else known.count + 1
        self._refusals[kind] = AuditRecord(
            at=self._wall(), actor=actor, action=action, subject=subject, tenant=tenant, detail=detail, count=count
        )

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await self.refreshed()

    def _write(self, records: list[AuditRecord]) -> None:
        if records:
            self._registry.record(records, keep=_AUDIT_RECORDS)

    def _refresh(self) -> None:
        version = self._registry.version()
        if version != self._version:
            self._admitted = self._registry.admitted()
            self._version = version


def _unknown(message: str) -> Failure:
    fix = "Send `Authorization: Bearer KEY` or `x-api-key: KEY`, with a key from whoever runs this gateway."
    return failure("unknown_key", 401, f"{message} {fix}", (b"www-authenticate", b"Bearer"))
