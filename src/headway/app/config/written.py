"""The tables of `headway.toml`, as a person writes them. Each field's description is what the JSON schema shows."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from headway.app.config.resending import Breakers, Fanout, Hedging, Retries
from headway.app.config.values import Bytes, DialectName, Port, RedisUrl, Seconds, Table, TracesUrl, Url, Wait
from headway.core import config
from headway.core.errors import BadInputError
from headway.core.fleet import EngineKind
from headway.core.limits import Measure, read_limit
from headway.core.log_lines import LogFormat
from headway.gateway import scheduling
from headway.gateway.caches.station import PATIENCE_SECONDS
from headway.gateway.siblings import PATIENCE_SECONDS as PATIENCE_TASKS
from headway.policy.cache import rules
from headway.policy.cache.worthy import TAG
from headway.policy.models.doubts import Doubts
from headway.wire.dialects import CHAT, EMBEDDINGS

_LIMITS: Final = config.Limits()


class Limits(Table):
    """Bounds that keep one client or one engine from harming the rest."""

    header_bytes: Bytes = _LIMITS.header_bytes
    """Largest head of a request."""
    body_bytes: Bytes = _LIMITS.body_bytes
    """Largest body of a request."""
    response_bytes: Bytes = _LIMITS.response_bytes
    """Largest answer that is not streamed, and largest single event of a stream."""
    header_seconds: Wait = _LIMITS.header_seconds
    """From a request's first byte to the end of its head."""
    body_seconds: Wait = _LIMITS.body_seconds
    """From the end of a request's head to the end of its body."""
    idle_seconds: Wait = _LIMITS.idle_seconds
    """How long a kept-alive connection may have nothing to do."""
    connect_seconds: Wait = _LIMITS.connect_seconds
    """What connecting to an engine may take."""
    first_byte_seconds: Wait = _LIMITS.first_byte_seconds
    """From a request sent to the first byte of the engine's answer."""
    stall_seconds: Wait = _LIMITS.stall_seconds
    """Between two bytes of an engine's answer."""
    write_buffer_bytes: Bytes = _LIMITS.write_buffer_bytes
    """What may wait for a slow client before its engine is read no further."""
    connections: Annotated[int, Field(gt=0)] = _LIMITS.connections
    """Clients connected at the same time."""


class Gateway(Table):
    """Where the gateway listens, and what it keeps."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8080
    """Port to listen on; 0: a free one."""
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    """Processes that serve calls, on one port; with several, one more looks after them."""
    allow_hosts: list[str] = Field(default=[])
    """On loopback, public names it may be called by, e.g. a proxy's."""
    admin: bool = True
    """Serve the dashboard."""
    admin_port: Port = 0
    """Port of the dashboard, on 127.0.0.1 only; 0: a free one."""
    record: bool = True
    """Record spans, so that tasks can be explained."""
    store: Path | None = Field(default=None, strict=False)
    """File for spans; left out: in your data directory."""
    keep_text: bool = False
    """Record prompts and answers too."""
    policy: str | None = None
    """Routing policy, by name; left out: expected-seconds where there is a table [schedule], else least-loaded."""
    drain: Seconds = 30.0
    """What calls under way may take to end after SIGTERM."""
    limits: Limits = Limits()


class Replica(Table):
    """An engine or a provider."""

    url: Url
    """Base URL up to and including /v1, which is added where there is no path."""
    id: Annotated[str, Field(min_length=1)] | None = None
    """What to call it; left out: its host and port."""
    models: list[str] = Field(default=[])
    """Models it serves; left out: one replica gets every name, several are asked what they serve."""
    speaks: list[DialectName] = Field(min_length=1, default=[CHAT.name, EMBEDDINGS.name])
    """Dialects that it can be asked in, the best first; see docs/dialects.md."""
    kind: EngineKind = "openai"
    """What it is, where Headway can do more with it than its API says: llama.cpp's server; else openai."""
    key_env: Annotated[str, Field(min_length=1)] | None = None
    """Environment variable with the API key to send instead of the caller's own."""


_SCHEDULING: Final = scheduling.Scheduling()


class Schedule(Table):
    """Calls take turns: how; see docs/routing.md. Without this table each is sent as it comes."""

    on: bool = True
    """False: as if the table were not there."""
    order: scheduling.OrderName = _SCHEDULING.order
    """Whose turn it is among the calls of one tenant."""
    admit_tasks: bool = _SCHEDULING.admit_tasks
    """Let no more tasks begin than replicas keep warm."""
    patience: Wait = _SCHEDULING.patience
    """How long the first in the queue waits until a task that is at work has to take turns with it."""
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(default={}, strict=False)
    """Shares of tenants that wait at the same time, by tenant; 1 for those not named."""
    batch: list[str] = Field(default=[])
    """Tenants, or ids of keys, whose calls are batch, whatever their header x-headway-lane says."""
    shadow: str | None = None
    """Another routing policy, by name, that is tried: what it would have done is counted and noted."""
    most_waiting: Annotated[int, Field(ge=0)] = _SCHEDULING.most_waiting
    """Calls that may wait; one more is refused at once."""
    longest_wait: Wait = _SCHEDULING.longest_wait
    """What a call waits at most for its turn."""


class Embedded(Table):
    """Local replicas of one model."""

    replicas: Annotated[int, Field(gt=0)] = 2
    """How many."""
    weights: Path | None = Field(default=None, strict=False)
    """GGUF file; left out: the model that `headway models pull` brings."""
    slots: Annotated[int, Field(gt=0)] = 2
    """Calls that one replica works on at the same time."""
    context: Annotated[int, Field(gt=0)] = 4096
    """Tokens for each slot."""
    threads: Annotated[int, Field(gt=0)] | None = None
    """For each replica; left out: the machine's cores shared out."""
    cache_mib: Annotated[int, Field(gt=0)] = 512
    """Memory for prompts that have left their slot, for each replica, in MiB."""


_RULE: Final = rules.CacheRule(name="-")


class CacheRule(Table):
    """For which calls answers are kept, and how; the first that covers a call counts."""

    name: Annotated[str, Field(min_length=1)]
    """By which figures and people know it."""
    path: Literal[
        "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/messages/count_tokens"
    ] = "/v1/chat/completions"
    """Where the calls come in."""
    models: Annotated[list[str], Field(min_length=1)] = Field(default=["*"])
    """Models, after aliases; * and ? stand for any letters and any one."""
    mode: Literal["off", "exact", "semantic", "shadow"] = _RULE.mode
    """exact: the same question to the byte; semantic: one that means the same, too, once that was measured to be right;
    shadow: measure only."""
    ttl: Wait = _RULE.ttl
    """How long an answer is fresh."""
    stale: Seconds = _RULE.stale
    """How long after that it is given while it is asked for anew."""
    wait: Seconds = _RULE.wait
    """How long a call waits at most for another's answer to the same question."""
    tags: list[Annotated[str, Field(pattern=TAG)]] = Field(default=[])
    """By which its answers can be dropped, beside those that requests name."""
    version: str = _RULE.version
    """Change it, and nothing that was kept before is given."""
    largest: Bytes = _RULE.largest
    """Longest answer that is kept."""
    threshold: Annotated[float, Field(gt=0, le=1)] = _RULE.threshold
    """Similarity (cosine) from which on two questions may mean the same."""
    error: Annotated[float, Field(gt=0, lt=1)] = _RULE.error
    """Share of wrong answers below which answers may be given by meaning."""


class Cache(Table):
    """Answers given again; off for all calls that no rule covers."""

    bytes: Bytes = 64 << 20
    """Memory for all answers of one process."""
    questions: Bytes = 32 << 20
    """Memory for the questions of one rule that compares by meaning."""
    redis: RedisUrl | None = None
    """Where several processes share answers, e.g. redis://127.0.0.1:6379/1."""
    redis_env: Annotated[str, Field(min_length=1)] | None = None
    """Environment variable with that address instead, if it holds a password."""
    patience: Wait = PATIENCE_SECONDS
    """What a call waits at most for Redis or for its question to be understood."""
    rules: list[CacheRule] = Field(default=[])
    """In the order in which they count."""


def _limit(measure: Measure) -> AfterValidator:
    def check(value: str | float) -> str | float:
        try:
            read_limit(value, measure, "it")
        except BadInputError as error:
            raise ValueError(str(error).removeprefix("it ")) from error
        return value

    return AfterValidator(check)


_Written = str | int | float
Requests = Annotated[_Written, _limit("requests")]
Tokens = Annotated[_Written, _limit("tokens")]
AtOnce = Annotated[_Written, _limit("concurrency")]
Money = Annotated[_Written, _limit("money")]
Calls = Annotated[_Written, _limit("calls")]
TaskSeconds = Annotated[_Written, _limit("seconds")]


class Keys(Table):
    """Callers need a key; see docs/keys.md."""

    store: Annotated[str, Field(min_length=1)] | None = None
    """Where keys, tenants and the audit are: a file, or postgresql://…; left out: in your data directory."""
    store_env: Annotated[str, Field(min_length=1)] | None = None
    """Environment variable with that address instead, if it holds a password."""
    limits: Annotated[str, Field(min_length=1)] | None = None
    """Where use is counted: a file, or redis://…; left out: with the keys."""
    limits_env: Annotated[str, Field(min_length=1)] | None = None
    """Environment variable with that address instead, if it holds a password."""


class Tenant(Table):
    """Whoever is kept apart from all others; limits are of all its keys together, e.g. "5 USD warn 4 USD"."""

    title: str = ""
    """What it is, for people."""
    models: list[str] = Field(default=[])
    """Models that its keys may call; left out: all."""
    rpm: Requests | None = None
    """Requests in any minute."""
    tpm: Tokens | None = None
    """Tokens in any minute, e.g. "100k"."""
    concurrency: AtOnce | None = None
    """Calls under way at once."""
    day: Money | None = None
    """Money in a day (UTC), e.g. "5 USD"."""
    month: Money | None = None
    """Money in a month (UTC)."""
    task_calls: Calls | None = None
    """Model calls of any one task."""
    task_tokens: Tokens | None = None
    """Tokens of any one task."""
    task_money: Money | None = None
    """Money of any one task."""
    task_seconds: TaskSeconds | None = None
    """Seconds of any one task, from its first call."""


_DOUBTS: Final = Doubts()


class ModelRule(Table):
    """When all that it names is so, its tier is taken."""

    tier: str
    """Name of a table [tiers.NAME]."""
    tenants: list[str] = Field(default=[])
    """The call is one of these tenants'."""
    lane: Literal["interactive", "batch"] | None = None
    """The call is of this lane: batch by its header x-headway-lane or by [schedule] batch, else interactive."""
    over_input_tokens: Annotated[int, Field(ge=0)] | None = None
    """The prompt is longer than this, at three bytes a token."""
    with_tools: bool | None = None
    """The call offers tools to the model, or offers none."""
    with_images: bool | None = None
    """The call shows images to the model, or shows none."""
    after_calls: Annotated[int, Field(ge=0)] | None = None
    """The task has made more calls than this."""


class Escalate(Table):
    """An answer that is not good enough is asked for again at the next of these tiers; see docs/model-names.md."""

    tiers: Annotated[list[str], Field(min_length=2)]
    """From the least to the best."""
    refusal: bool = _DOUBTS.refused
    """An answer in which the model declines is not good enough."""
    json_schema: bool = _DOUBTS.schema
    """Nor is one that is not the JSON that the request asks for."""
    mean_logprob: Annotated[float, Field(le=0)] | None = None
    """Nor one whose tokens are less probable than this: the mean of the natural logarithms of their probabilities."""
    judge: str | None = None
    """Model that is asked to grade answers, as replicas serve it."""
    judge_below: Annotated[float, Field(gt=0, le=1)] = 0.7
    """An answer with a lower grade, 0 to 1, is not good enough either."""


class Model(Table):
    """A name that clients ask for; see docs/model-names.md."""

    models: list[str] = Field(default=[])
    """What answers, as replicas serve it; then what does where that cannot."""
    tier: str | None = None
    """Or the tier that answers where no rule is met."""
    rules: list[ModelRule] = Field(default=[])
    """The first that is met decides."""
    escalate: Escalate | None = None
    """What makes an answer not good enough; left out: whatever it is will do."""


class Tier(Table):
    """A grade of service."""

    models: Annotated[list[str], Field(min_length=1)]
    """What answers, as replicas serve it; then what does where that cannot."""
    context: Annotated[int, Field(gt=0)] | None = None
    """Longest prompt and answer together, in tokens."""
    tools: Literal["all", "none"] | list[str] = "all"
    """Tools that a call may offer the model: all, none, or those named."""


class Tasks(Table):
    """How workers know of each other's tasks, so that a task stays one whichever of them its calls come to."""

    redis: RedisUrl | None = None
    """Where several machines share them, e.g. redis://127.0.0.1:6379/2; left out: workers of one machine do."""
    redis_env: Annotated[str, Field(min_length=1)] | None = None
    """Or the environment variable with that address, where it holds a password."""
    ttl: Wait = 3600.0
    """How long a call is remembered in Redis."""
    patience: Wait = PATIENCE_TASKS
    """What a call waits at most to learn of other workers' calls."""


class Export(Table):
    """Where recorded spans go on to, as OTLP over HTTP; see docs/observe.md."""

    endpoint: TracesUrl | None = None
    """Base URL; /v1/traces is added. Left out: OTEL_EXPORTER_OTLP_ENDPOINT, and without it nothing is exported."""
    headers_env: Annotated[str, Field(min_length=1)] | None = None
    """Environment variable with headers, name=value,name=value; left out: OTEL_EXPORTER_OTLP_HEADERS."""


class Log(Table):
    """What is said on standard error."""

    format: LogFormat = "text"
    """Lines for a person, or JSON for a machine."""
    calls: bool = False
    """A line for each call, too."""


class File(Table):
    """Headway's configuration: one file for the gateway, budgets and prices."""

    gateway: Gateway = Gateway()
    replicas: list[Replica] = Field(default=[])
    embedded: Embedded | None = None
    schedule: Schedule | None = None
    cache: Cache | None = None
    retries: Retries | None = None
    breakers: Breakers | None = None
    hedging: Hedging | None = None
    fanout: Fanout | None = None
    models: dict[str, Model] = Field(default={})
    """By the name that clients ask for."""
    tiers: dict[str, Tier] = Field(default={})
    tasks: Tasks = Tasks()
    keys: Keys | None = None
    tenants: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")], Tenant] = Field(default={})
    """By name; with one, callers need a key."""
    export: Export = Export()
    log: Log = Log()
    budget: dict[str, Any] | None = None
    """Read by `headway explain --budget`; see docs/budgets.md."""
    prices: dict[str, Any] | None = None
    """Own prices of models; see docs/explain.md."""
