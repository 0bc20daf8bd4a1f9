"""Where a run was made: versions and facts of the machine, on which the last digits of results can depend."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from .._version import __version__

# Those that compute; numba and tomotopy are optional.
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "tomotopy")


def versions() -> dict[str, str]:
    """Return the versions of topicloom, of Python and of the installed packages that compute, by name."""
    found = {"topicloom": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # it is not installed, or not as a package
            continue
    return found | {"torch": torch.__version__}  # which says how it was built, such as 2.6.0+cpu


def machine(device: torch.device) -> dict[str, Any]:
    """Return facts of this machine.

    Args:
        device: where the model is.
    """
    return {
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "torch_build": {
            "commit": torch.version.git_version,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "mkl": torch.backends.mkl.is_available(),
            "cuda": torch.version.cuda,
        },
    }
