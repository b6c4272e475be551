"""What a stream can fail with in Spark's own words, for those who run `contrada stream`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from contrada.errors import InvalidInput, read_line

# How Spark says that files of its checkpoint are missing, cut short or unreadable.
_DAMAGE = re.compile(r"batch \d+ doesn't exist|\blog file\b|\bmetadata log\b|fasterxml|JSON String")
_HEAD, _TAIL = "terminated with exception: ", " SQLSTATE:"


@contextmanager
def explaining_damage(folder: str) -> Iterator[None]:
    """Raise, as one line, that the checkpoint of a state is damaged; let other errors pass."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import StreamingQueryException

    try:
        yield
    except (StreamingQueryException, Py4JJavaError) as error:
        what = find_damage(str(error))
        if what is None:
            raise
        raise InvalidInput(
            f"--state {folder}: the checkpoint in it is damaged: {what}; restore the state as it "
            "was last (a copy from before is not enough), or begin with a new --state and a new "
            "--to"
        ) from None


def find_damage(text: str) -> str | None:
    """Find what Spark says of a damaged checkpoint; None where it says something else."""
    head = text.partition("=== Streaming Query")[0].partition("\tat ")[0]
    if read_line(text) is not None or not _DAMAGE.search(head):
        return None
    said = head.partition(_HEAD)[2].partition(_TAIL)[0] or head.partition("\n: ")[2] or head
    return " ".join(said.split("\n")[0].split())
