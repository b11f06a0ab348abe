"""How far what-ifs lie from the truth: one half of recorded sessions predicts, the other half shows.

    python benchmarks/levers.py [DATA]

``DATA`` holds the recordings (`workloads/`, `traces/`); without it, ``shared/data`` beside this checkout is taken.
Nothing here depends on the machine: the same recordings give the same tables, in Markdown.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rig.evidence import Evidence, real
from rig.experiments import AT, OURS, Cell, Fitted, Replays, context, iterations, prefill, tools
from rig.holdout import Error, summed

SEEDS = range(5)
"""Splits; tables show the first, summaries all of them."""
SHARED = Path(__file__).parents[2] / "shared" / "data"

Experiment = Callable[[Evidence, int, Replays], Iterable[Cell]]
EXPERIMENTS: tuple[tuple[str, Experiment], ...] = (
    ("Iterations taken out", iterations),
    ("A tool's time replaced", tools),
    ("Context added, call by call", lambda evidence, seed, _: context(evidence, seed)),
)


def told(error: Error | None) -> str:
    """An error with its interval."""
    return "" if error is None else f"{error.value:+.0%} [{error.low:+.0%}, {error.high:+.0%}]"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """In Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def summaries(cells: Sequence[Cell]) -> Iterator[str]:
    """Each predictor over all cells of all splits."""
    rows: list[list[str]] = []
    for name in dict.fromkeys(name for cell in cells for name, _ in cell.errors):
        for q in AT:
            found = summed(cell.errors[name, q] for cell in cells if (name, q) in cell.errors)
            if found is not None:
                figures = f"{found.size:.0%}", f"{found.bias:+.0%}", f"{found.covered:.0%}"
                rows.append([name, f"p{100 * q:.0f}", *figures, str(found.of)])
    if rows:
        yield from table(("predictor", "of", "median error, any sign", "bias", "intervals with 0", "comparisons"), rows)


def details(cells: Sequence[Cell]) -> Iterator[str]:
    """Each cell of one split: the prediction beside what could be said without."""
    others = [name for name in dict.fromkeys(name for cell in cells for name, _ in cell.errors) if name != OURS]
    shown = [cell for cell in cells if cell.errors]
    if not shown:
        return
    rows = [
        [
            cell.what, f"{cell.of[0]} / {cell.of[1]}", *(told(cell.errors.get((OURS, q))) for q in AT),
            *(told(cell.errors.get((name, 0.5))) for name in others[:1]),
        ]
        for cell in shown
    ]  # fmt: skip
    yield from table(("tasks or calls", "predict / show", "p50", "p95", f"{others[0]}, p50"), rows)


def lines(fitted: Sequence[Fitted], what: str) -> Iterator[str]:
    """Each model's line."""
    yield f"Seconds are those of the {what}."
    yield ""
    rows = [
        [
            one.model, f"{one.of[0]:,} / {one.of[1]:,}",
            f"{one.line.slope * 1000:.3f} [{one.line.slope_low * 1000:.3f}, {one.line.slope_high * 1000:.3f}]",
            *(f"{size:.0%}, {bias:+.0%}" for size, bias in one.errors.values()),
        ]
        for one in fitted
    ]  # fmt: skip
    yield from table(("model", "fit / tested", "s per 1,000 tokens", "line", "mean", "median"), rows)


def report(evidence: Evidence) -> Iterator[str]:
    """All experiments on one set."""
    without = "; ".join(f"{count:,} with {why}" for why, count in evidence.left_out.items()) or "none"
    yield f"## {evidence.name}"
    yield ""
    sessions = len({one.session for one in evidence.tasks})
    yield f"{len(evidence.tasks):,} tasks of {sessions:,} sessions. Left out: {without}."
    yield ""
    replays = Replays()
    for name, experiment in EXPERIMENTS:
        splits = [list(experiment(evidence, seed, replays)) for seed in SEEDS]
        cells = [cell for split in splits for cell in split]
        yield f"### {name}"
        yield ""
        if not any(cell.errors for cell in cells):
            yield "Too few of them for any comparison."
            yield ""
        yield from summaries(cells)
        yield from details(splits[0])
    if fitted := list(prefill(evidence, SEEDS[0])):
        yield "### Seconds by computed tokens"
        yield ""
        yield from lines(fitted, evidence.what)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=SHARED, help="folder of the recordings")
    found = 0
    for one in real(parser.parse_args().data):
        if isinstance(one, str):
            print(one)
        else:
            found += 1
            print("\n".join(report(one)), flush=True)
    if not found:
        print("no recordings: nothing could be validated", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
