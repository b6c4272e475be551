"""The handshake of driver and workers: what both must run."""

import platform
from dataclasses import dataclass

import contrada
from contrada.errors import Unavailable
from contrada.files.sections import SECTIONS_FORMAT


@dataclass(frozen=True, slots=True)
class Handshake:
    """What driver and workers must have in common."""

    contrada: str
    python: str
    snapshot: int

    @classmethod
    def here(cls) -> "Handshake":
        """Return what this process runs."""
        python = ".".join(platform.python_version_tuple()[:2])
        return cls(contrada.__version__, python, SECTIONS_FORMAT)

    def check(self) -> None:
        """Refuse to work for a driver that runs something else."""
        here = Handshake.here()
        for name in ("contrada", "python", "snapshot"):
            theirs, ours = getattr(self, name), getattr(here, name)
            if theirs != ours:
                raise Unavailable(
                    f"driver and workers differ: {name} {theirs} on the driver, {ours} on "
                    f"{platform.node()}; install the same on both"
                )
