"""Serves one gateway for a benchmark: what `headway serve` runs, without its admin pages.

    python benchmarks/serve_gateway.py --upstream http://127.0.0.1:9000/v1 --store /tmp/bench.db

Prints {"port": N} when it listens and, once it has ended on SIGTERM and recorded, what it recorded.
"""

import argparse
import asyncio
import json
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import uvloop

from headway.core.clock import SystemClock
from headway.core.config import Limits, Recording
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.gateway.app import Gateway
from headway.gateway.collector import collect_seldom
from headway.gateway.fleet import LiveFleet
from headway.policy.identify import Identifier
from headway.policy.routing.least_loaded import LeastLoaded
from headway.trace.ids import Ids
from headway.trace.record import Recorder
from headway.trace.store import Store

SAMPLE_TASKS = 500


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", required=True, help="base URL of the engine, up to and including /v1")
    parser.add_argument("--store", required=True, type=Path, help="where spans go")
    parser.add_argument("--record", action=argparse.BooleanOptionalAction, default=True, help="record spans")
    parser.add_argument("--identify", action=argparse.BooleanOptionalAction, default=True, help="find each call's task")
    return parser.parse_args()


def _evidence(store: Store) -> Counter[str]:
    """How the calls of the newest tasks came to their task."""
    found: Counter[str] = Counter()
    for row in store.tasks(SAMPLE_TASKS):
        calls = (span.work for span in store.spans(row.task) if isinstance(span.work, ModelCall))
        found.update(call.identity.evidence for call in calls if call.identity is not None)
    return found


async def _serve(options: argparse.Namespace, recorder: Recorder | None) -> None:
    clock = SystemClock()
    gateway = Gateway(
        LiveFleet([Replica(id=ReplicaId("mock"), url=options.upstream)]),
        policy=LeastLoaded(),
        identifier=Identifier(new_id=Ids(clock).task) if options.identify else None,
        recorder=recorder,
        limits=Limits(),
        recording=Recording(enabled=options.record),
        clock=clock,
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    _, port = await gateway.start("127.0.0.1", 0)
    print(json.dumps({"port": port}), flush=True)
    await ended.wait()
    await gateway.close(drain=1.0)


def main() -> None:
    """Serve until SIGTERM."""
    options = _arguments()
    with ExitStack() as stack:
        store = stack.enter_context(Store(options.store)) if options.record else None
        recorder = Recorder(store, Recording().buffer_spans) if store is not None else None
        collect_seldom()
        uvloop.run(_serve(options, recorder))
        if store is not None and recorder is not None:
            recorder.close()
            seen = {"recorded": recorder.recorded, "dropped": recorder.dropped, "evidence": _evidence(store)}
            print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
