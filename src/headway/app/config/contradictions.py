"""What a configuration says twice or against itself, table by table, though each of its lines is well."""

from collections.abc import Iterator

from headway.app.config.places import Key
from headway.app.config.serving import called
from headway.app.config.written import Escalate, File, Model

Found = tuple[Key, str]
"""Where, and what is wrong with it."""


def contradictions(file: File) -> Iterator[Found]:
    """All of them, whatever flags and environment variables say."""
    yield from _replicas(file)
    yield from _twice(file)
    yield from _models(file)
    if file.retries is not None and file.retries.base > file.retries.cap:
        longest = f"{file.retries.cap:g} s, which is what a wait is at most (`cap`)"
        yield ("retries", "base"), f"{file.retries.base:g} s are more than {longest}"
    seen = set[str]()
    for i, rule in enumerate(file.cache.rules if file.cache is not None else ()):
        if rule.name in seen:
            yield (
                ("cache", "rules", i, "name"),
                f"another cache rule is called {rule.name!r}, too; give each its own name",
            )
        seen.add(rule.name)


def unknown_tiers(file: File) -> Iterator[Found]:
    """Tiers that models name and that there are not."""
    for name, model in file.models.items():
        wanted: list[tuple[Key, str | None]] = [(("models", name, "tier"), model.tier)]
        wanted += [(("models", name, "rules", i, "tier"), rule.tier) for i, rule in enumerate(model.rules)]
        if model.escalate is not None:
            key: Key = ("models", name, "escalate", "tiers")
            wanted += [((*key, i), tier) for i, tier in enumerate(model.escalate.tiers)]
        for key, tier in wanted:
            if tier is not None and tier not in file.tiers:
                yield key, f"there is no tier {tier!r}; give it a table [tiers.{tier}]"


def _replicas(file: File) -> Iterator[Found]:
    seen = set[str]()
    for i, one in enumerate(file.replicas):
        name = called(one)
        if name in seen:
            key = "url" if one.id is None else "id"
            yield ("replicas", i, key), f"another replica is called {name!r}, too; give each an id of its own"
        seen.add(name)


def _twice(file: File) -> Iterator[Found]:
    """An address and the variable that holds it."""
    tables = (("tasks", file.tasks, "redis"), ("cache", file.cache, "redis"))
    for table, written, key in (*tables, ("keys", file.keys, "store"), ("keys", file.keys, "limits")):
        if getattr(written, key, None) is not None and getattr(written, f"{key}_env", None) is not None:
            yield (table, f"{key}_env"), f"{table}.{key} says where it is already; leave one of them out"


def _models(file: File) -> Iterator[Found]:
    for name, model in file.models.items():
        if not model.models and model.tier is None:
            yield ("models", name), "nothing answers for it; give it models, or a tier"
        if model.escalate is not None:
            yield from _escalation(name, model, model.escalate)


def _escalation(name: str, model: Model, written: Escalate) -> Iterator[Found]:
    key: Key = ("models", name, "escalate")
    first = [tier for tier in (model.tier, *[rule.tier for rule in model.rules]) if tier is not None]
    if not first:
        yield key, "it goes from tier to tier, and this name has none; give it a tier"
    elif not set(first) & set(written.tiers[:-1]):
        lesser = ", ".join(written.tiers[:-1])
        yield (*key, "tiers"), f"nothing is ever repeated, for no answer is first made at {lesser}; name the tier it is"
    if len(set(written.tiers)) < len(written.tiers):
        yield (*key, "tiers"), "a tier is in it twice; name each once, from the least to the best"
    if not (written.refusal or written.json_schema or written.mean_logprob is not None or written.judge):
        yield key, "nothing counts against an answer; leave one of refusal and json_schema on, or name a judge"
