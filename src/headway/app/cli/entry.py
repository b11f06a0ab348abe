"""What the `headway` script starts: so little that Ctrl-C finds it ready while all else is still being loaded."""

import sys


def main() -> None:
    """Load the command line and run it; Ctrl-C while it loads ends it with a line and status 130, as it does later."""
    try:
        from headway.app.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("headway: stopped by Ctrl-C.", file=sys.stderr)  # noqa: T201 - what prints better may not be loaded yet
        sys.exit(130)
