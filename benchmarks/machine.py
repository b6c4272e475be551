"""On which machine, and with which versions, a benchmark has run."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import shapely


def describe_machine(*packages: str) -> str:
    """Name the processor, Python, Shapely and GEOS, and the versions of some more packages."""
    versions = [f"Python {platform.python_version()}", f"shapely {shapely.__version__}"]
    versions.append(f"GEOS {shapely.geos_version_string}")
    versions += [f"{package} {version(package)}" for package in packages]
    cores = f"{_cpu_model()}, {os.cpu_count()} cores"
    return f"{cores}; {', '.join(versions)}, {platform.machine()}"


def _cpu_model() -> str:
    """Name the processor, where Linux or Python know it."""
    path = Path("/proc/cpuinfo")
    found = path.is_file() and re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE)
    return found[1] if found else platform.processor() or "unknown processor"
