"""The command serve: a run over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Allow, Device, Quiet, Run
from .shell import command


@command
def serve(
    run: Run,
    host: Annotated[str, typer.Option(help="Address to listen on; by default only this machine reaches it.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TOPICLOOM_TOKEN",
            help="A secret that each request must send; needed if other machines reach the address. The environment "
            "variable keeps it out of the list of processes.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name of this service, such as that of a proxy; repeatable."),
    ] = None,
    device: Device = "cpu",
    allow: Allow = None,
    quiet: Quiet = False,
) -> None:
    """Serve a run until it is interrupted: the explorer, its documents with full-text search, and inference."""
    from ..topics.saved import find_model

    find_model(run)
    from ..service import serve as serve_run

    serve_run(run, host, port, token=token, names=allow_host or (), device=device, allow=allow or ())
