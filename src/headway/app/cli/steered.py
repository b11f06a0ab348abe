"""What the commands share that steer a gateway that runs: where it is, and with which key."""

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="HEADWAY_URL", help="Where the gateway listens; default: http://127.0.0.1:8080."),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="HEADWAY_KEY",
        help="An operator's or admin's key, where the gateway asks for keys; better in the variable than here.",
        show_default=False,
    ),
]
