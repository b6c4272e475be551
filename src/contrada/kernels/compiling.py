"""`@kernel`: how every kernel is compiled, and where the machine code is kept.

Numba's cache does not notice edits in another file and would serve the old answer, so the cache
folder is named by a hash of all kernel sources, the Numba version and the processor. A folder that
cannot be written to means compiling anew in each process.
"""

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numba.core.config

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

config: Any = numba.core.config


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function without the GIL, cached, with exact floating-point arithmetic."""
    before = config.CACHE_DIR
    config.CACHE_DIR = before or _cache_folder()
    try:
        compiled: Callable[Parameters, Result] = numba.njit(
            nogil=True, cache=bool(config.CACHE_DIR), fastmath=False
        )(function)
    finally:
        config.CACHE_DIR = before
    return compiled


@lru_cache(maxsize=1)
def _cache_folder() -> str:
    """Find a folder for compiled kernels; empty where none can be written to."""
    content = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        content.update(source.read_bytes())
    content.update(f"{numba.__version__} {platform.machine()} {platform.processor()}".encode())
    name = f"contrada/kernels-{content.hexdigest()[:16]}"
    roots = [os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", tempfile.gettempdir()]
    for root in roots:
        folder = Path(root) / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""
