"""Importing what a user names as "module:name", such as a model's class or a tokenizer."""

from __future__ import annotations

import importlib
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import InputError


def import_named(text: str, example: str) -> Any:
    """Import what "module:name" names. The current directory is searched first.

    Args:
        text: the module and the name.
        example: what a correct text looks like, such as "module:Class, such as my_model:MyModel".

    Returns:
        what the module has under this name; None if it has nothing.

    Raises:
        InputError: the text names no module, or the module cannot be imported.
    """
    module_name, _, name = text.partition(":")
    if not module_name or module_name.startswith("."):
        raise InputError(f"{text!r} does not name a module; write {example}")
    here = str(Path.cwd())
    importlib.invalidate_caches()  # the module may have been written a moment ago
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the module's own code may raise anything
        raise InputError(_why_not_imported(module_name, error)) from error
    finally:
        with suppress(ValueError):  # the module's own code may have removed it
            sys.path.remove(here)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_relative_to(here) and here not in sys.path:
        sys.path.append(here)  # worker processes, which inherit the path, import the module as well
    return getattr(module, name, None) if name else None


def is_allowed(module: str, allowed: set[str]) -> bool:
    """Return whether a module may be imported: it is named in `allowed`, or the package that it belongs to is."""
    return module in allowed or module.split(".")[0] in allowed


def _why_not_imported(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"there is no module {error.name!r} in the current directory, nor where Python finds modules"
    if isinstance(error, SyntaxError):
        return f"the module {module!r} cannot be imported: {error.msg} ({error.filename}, line {error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"the module {module!r} cannot be imported: {reason} ({last.filename}, line {last.lineno})"
