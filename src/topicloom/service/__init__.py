"""The service: a run's topics, documents and inference over HTTP, for the explorer and for other programs.

It needs the extra `serve` (FastAPI and uvicorn).
"""

from typing import Any

from ..errors import MissingExtraError
from .guard import Access, Limits

__all__ = ["Access", "Limits", "Live", "make_app", "serve"]

_PLACES = {"Live": "live", "make_app": "app", "serve": "server"}
_NEEDED = frozenset({"fastapi", "fastapi_offline", "httptools", "prometheus_client", "starlette", "uvicorn"})


def __getattr__(name: str) -> Any:
    """Import names that need the extra at their first use."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in _NEEDED:
            raise MissingExtraError.of("the service", error.name.split(".")[0], "serve") from None
        raise
