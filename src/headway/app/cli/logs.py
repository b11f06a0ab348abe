"""The log of a command that runs on: one line per event on standard error, for a person to read."""

import logging


def log_to_stderr() -> None:
    """Send what Headway has to say to standard error; of its libraries, only warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(levelname)-7s  %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("headway").setLevel(logging.INFO)
