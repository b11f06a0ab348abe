"""What each tenant's calls come to, for the page of metrics and for the tenant itself."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from headway.core.span import ModelCall, Span
from headway.gateway.exposition import braces, family

TENANTS: Final = 1_000
"""With figures of their own; those that call later have none."""
_REQUESTS: Final = "headway_tenant_requests_total"
_TOKENS: Final = "headway_tenant_tokens_total"


class TenantFigures:
    """Counters by tenant and model; for one thread."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._tokens: Counter[tuple[str, str, str]] = Counter()

    def observe(self, model: str, spans: Sequence[Span], calls: Sequence[ModelCall]) -> None:
        """Count ``calls``, whose spans are ``spans``, under the model's label."""
        for span, call in zip(spans, calls, strict=True):
            tenant = span.tenant
            if tenant is None or not self._has_figures(tenant):
                continue
            self._requests[tenant, model, span.error or "ok"] += 1
            usage = call.usage
            for kind, count in (
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
                ("cached", usage.cache_read),
            ):
                if count is not None and call.given_again is None:
                    self._tokens[tenant, model, kind] += count

    def families(self) -> Iterator[str]:
        """For the page of metrics; none where no caller has a tenant."""
        if not self._known:
            return
        yield from family(
            _REQUESTS,
            "counter",
            "A tenant's model calls by how they ended: ok, or the type of the error.",
            [
                ({"tenant": tenant, "gen_ai_request_model": model, "status": status}, count)
                for (tenant, model, status), count in self._requests.items()
            ],
        )
        yield from family(
            _TOKENS,
            "counter",
            "Tokens of a tenant's calls, where engines reported them; cached ones are among the input.",
            [
                ({"tenant": tenant, "gen_ai_request_model": model, "gen_ai_token_type": kind}, count)
                for (tenant, model, kind), count in self._tokens.items()
            ],
        )

    def _has_figures(self, tenant: str) -> bool:
        if tenant not in self._known:
            if len(self._known) >= TENANTS:
                return False
            self._known.add(tenant)
        return True


def page_of(tenant: str, page: bytes) -> bytes:
    """Of a page of metrics what is one tenant's."""
    beginnings = tuple([name + braces({"tenant": tenant})[:-1] + "," for name in (_REQUESTS, _TOKENS)])
    heads = tuple([f"# {kind} {name} " for kind in ("HELP", "TYPE") for name in (_REQUESTS, _TOKENS)])
    lines = [line for line in page.decode().splitlines() if line.startswith((*beginnings, *heads))]
    return "".join([f"{line}\n" for line in lines]).encode()
