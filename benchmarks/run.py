"""Every figure that Headway promises, measured now, on this machine.

    python benchmarks/run.py [--quick]

Runs each benchmark beside this file as a process of its own, one after another, so that none disturbs another.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "anatomy",
    "claude_folder",
    "identity",
    "levers",
    "gateway",
    "runtime",
    "agents_at_work",
    "peers",
    "replicas",
    "fanout",
)
SHORTER = {"agents_at_work", "explain", "fanout", "gateway", "peers", "replicas", "runtime"}
"""Those that know how to be quick."""


def main() -> int:
    """Run them all; 1 when any could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter runs of those that take minutes")
    quick = ["--quick"] if parser.parse_args().quick else []
    failed: list[str] = []
    for name in BENCHMARKS:
        script = HERE / f"{name}.py"
        if not script.exists():
            continue
        print(f"── {name}", flush=True)
        flags = quick if name in SHORTER else []
        if subprocess.run([sys.executable, str(script), *flags], check=False).returncode != 0:
            failed.append(name)
        print(flush=True)
    if failed:
        print(f"could not be measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
