"""The log of a command that runs on: one line per event on standard error."""

import logging

from headway.core.log_lines import LogFormat, formatter


def log_to_stderr(form: LogFormat = "text") -> None:
    """Send what Headway has to say to standard error; of its libraries, only warnings."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("headway").setLevel(logging.INFO)
