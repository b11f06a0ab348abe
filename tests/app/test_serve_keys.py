"""One file, two tenants with different limits: from the text to refusals, as an operator has it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from running import served

from headway.app.config.keeping import keeping_of
from headway.app.config.reading import read_config
from headway.app.config.serving import service_of, with_keys
from headway.app.config.written import File
from headway.core.access import Tenant, TenantId
from headway.core.errors import BadInputError
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.gateway.door_opening import Keeping, declare
from headway.gateway.fake import FakeEngine
from headway.gateway.stores import open_registry

FILE = """
[gateway]
port = 0
admin = false
store = "spans.db"

[keys]
store = "access.db"

[tenants.acme]
title = "Acme"
rpm = 2
month = "100 USD warn 80 USD"
task_seconds = "10 min"

[tenants.zeta]
models = ["small"]
concurrency = 20

[models.smart]
models = ["larger", "large"]

[[replicas]]
id = "a"
url = "{url}"
models = ["small", "large"]
"""


def test_tenants_are_read_as_they_are_written(tmp_path: Path) -> None:
    keeping = keeping_of(read_config(FILE.format(url="http://x/v1"), "headway.toml"), tmp_path, {})
    assert keeping == Keeping(
        keys=str(tmp_path / "access.db"),
        tenants=(
            Tenant(
                id=TenantId("acme"),
                name="Acme",
                limits=CallerLimits(requests_per_minute=Limit(2), money_per_month=Limit(100_000_000, warn=80_000_000)),
                task=TaskLimits(seconds=Limit(600)),
            ),
            Tenant(id=TenantId("zeta"), models=("small",), limits=CallerLimits(concurrency=Limit(20))),
        ),
    )


def test_without_keys_and_tenants_nobody_is_asked() -> None:
    assert keeping_of(File(), Path(), {}) is None
    assert with_keys(File(), None, None) == File()


def test_flags_say_where_keys_are_and_that_they_are_needed() -> None:
    keeping = keeping_of(with_keys(File(), "/k.db", "redis://h/1"), Path(), {})
    assert keeping == Keeping(keys="/k.db", limits="redis://h/1")


def test_an_address_with_a_password_stays_out_of_the_file() -> None:
    written = read_config('[keys]\nstore_env = "PG"\n', "headway.toml")
    assert keeping_of(written, Path(), {"PG": "postgresql://h/db"}) == Keeping(keys="postgresql://h/db")
    with pytest.raises(BadInputError, match="PG, which is not set"):
        keeping_of(written, Path(), {})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('rpm = "many"', "headway.toml:2: tenants.acme.rpm.*no count"),
        ('month = "5 EUR"', "headway.toml:2: tenants.acme.month"),
        ('day = "5 USD warn 6 USD"', "would warn only after"),
        ("rpn = 5", "headway.toml:2: tenants.acme.rpn: there is no such key"),
    ],
)
def test_a_limit_that_is_none_is_named_with_its_line(line: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        read_config(f"[tenants.acme]\n{line}\n", "headway.toml")


def test_what_the_file_says_of_tenants_holds_and_one_switched_off_stays_so(tmp_path: Path) -> None:
    registry = open_registry(str(tmp_path / "access.db"))
    first, second = Tenant(id=TenantId("a"), models=("m",)), Tenant(id=TenantId("a"), models=("m", "n"))
    declare(registry, (first,), 1.0)
    registry.set_tenant(Tenant(id=TenantId("a"), models=("m",), disabled=True), registry.audited(1)[0])
    declare(registry, (second,), 2.0)
    declare(registry, (second,), 3.0)
    assert registry.tenant("a") == Tenant(id=TenantId("a"), models=("m", "n"), disabled=True)
    assert [(record.action, record.at) for record in registry.audited(9) if record.at > 1] == [("tenant.change", 2.0)]
    registry.close()


async def test_from_one_file_to_two_tenants(tmp_path: Path, headway: Callable[..., Any]) -> None:
    async with FakeEngine() as engine:
        written = read_config(FILE.format(url=engine.url), "headway.toml")
        keys: dict[str, str] = {}
        async with served(service_of(written, tmp_path, {})):  # makes the tenants
            pass
        for tenant in ("acme", "zeta"):
            made = headway("keys", "create", tenant, "--keys", str(tmp_path / "access.db"), "--json").out
            keys[tenant] = json.loads(made)["secret"]
        async with served(service_of(written, tmp_path, {})) as (ready, _):

            async def ask(tenant: str, model: str) -> str | None:
                async with openai.AsyncOpenAI(
                    base_url=ready.url,
                    api_key=keys[tenant],
                    max_retries=0,
                    http_client=openai.DefaultAsyncHttpxClient(verify=False),
                ) as client:
                    answer = await client.chat.completions.create(
                        model=model, messages=[{"role": "user", "content": "hi"}]
                    )
                    return answer.choices[0].message.content

            assert [await ask("acme", model) for model in ("small", "smart")] == ["echo: hi", "echo: hi"]
            assert [request["model"] for request in engine.requests] == ["small", "large"]
            with pytest.raises(openai.RateLimitError, match="The tenant acme has a limit of 2 requests a minute"):
                await ask("acme", "small")
            assert await ask("zeta", "small") == "echo: hi"
            with pytest.raises(openai.PermissionDeniedError, match="It may call: small"):
                await ask("zeta", "large")
