"""What calls may cost, and what they did."""

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.money import Price
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.gateway.tariff import Tariff

WHO = Caller(Key(id=KeyId("k"), tenant=TenantId("t"), prefix="", created=0.0), Tenant(id=TenantId("t")))
OWN = Price(input=1_000_000, output=2_000_000, cache_read=100_000, cache_write=1_250_000)
"""1 USD and 2 USD a million tokens."""
TARIFF = Tariff({"mine": OWN}, frozenset({"here"}), wall=lambda: 1_796_040_000.0)


def ask(model: str, prompt: bytes, max_output: int | None = 100, choices: int = 1) -> tuple[int, int | None]:
    found = TARIFF.ask(WHO, TaskId("x"), model, prompt, max_output=max_output, choices=choices)
    return found.tokens, found.money


def test_input_by_its_bytes_and_output_by_its_bound() -> None:
    # 300 bytes are 100 tokens at 1.25 micro-USD (as if written to the cache), and 100 of output at 2
    assert ask("mine", b"x" * 300) == (200, 125 + 200)
    assert ask("mine", b"x" * 301) == (201, 127 + 200)
    assert ask("mine", b"x" * 300, choices=3) == (400, 125 + 600)
    assert ask("mine", b"", max_output=None) == (4096, 8192)


def test_an_image_counts_as_one_whatever_its_bytes() -> None:
    prompt = b'[{"url":"data:image/png;base64,' + b"A" * 90_000 + b'"}]'
    assert ask("mine", prompt, max_output=0)[0] == -(-(90_000 + 34 - 90_000 - 8) // 3) + 2048


def test_local_models_cost_nothing_and_strangers_are_unknown() -> None:
    assert ask("here", b"x" * 30) == (110, 0)
    assert ask("nobody-knows-it", b"x" * 30) == (110, None)


def test_known_makers_are_on_the_list() -> None:
    # gpt-4o: 2.50 USD and 10 USD a million: 1000 tokens in, 100 out
    assert ask("gpt-4o", b"x" * 3000) == (1100, 2500 + 1000)


def test_what_was_used() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read=800, cache_write=0)
    assert TARIFF.used("mine", usage) == (1100, 200 + 80 + 200)
    assert TARIFF.used("here", usage) == (1100, 0)
    assert TARIFF.used("nobody-knows-it", usage) == (1100, None)


def test_what_the_engine_does_not_say_is_charged_in_full_or_unknown() -> None:
    assert TARIFF.used("mine", Usage(input_tokens=1000, output_tokens=100)) == (1100, 1000 + 200)
    assert TARIFF.used("mine", Usage(input_tokens=1000)) == (None, None)
    TARIFF.warm()
