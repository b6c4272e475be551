"""A stdout and a stderr whose readers have gone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from contrada.cli import progress


@contextmanager
def unread_streams() -> Iterator[None]:
    """Let nobody read stdout and stderr, and commands say at once what they are doing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_MOMENT_S", 0.0)
        streams = []
        for name in ("stdout", "stderr"):
            reader, writer = os.pipe()
            os.close(reader)
            streams.append(os.fdopen(writer, "w", buffering=1))
            patch.setattr(sys, name, streams[-1])
        yield
    for stream in streams:
        with suppress(BrokenPipeError):
            stream.close()
