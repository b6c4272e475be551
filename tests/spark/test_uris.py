"""What cannot be reached is not taken for a file that is wrong."""

import errno
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from contrada.errors import ContradaError, InvalidInput, Unavailable
from contrada.spark import geoparquet, uris

FAR, NEAR = "s3://bucket/x.parquet", "file:///x.parquet"


class NotFound(AnalysisException):
    def getCondition(self) -> str:
        return "PATH_NOT_FOUND"


def session_that(fault: Exception) -> Any:
    """A stand-in for a session whose reader fails."""

    def fail(*_: str) -> None:
        raise fault

    reader = SimpleNamespace(schema=lambda _: SimpleNamespace(parquet=fail))
    return SimpleNamespace(read=reader)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (NotFound("no such path"), InvalidInput),
        (IllegalArgumentException("an odd path"), InvalidInput),
        (AnalysisException("no file system for that scheme"), Unavailable),
        (PySparkException("no answer"), Unavailable),
    ],
)
def test_spark_finds_nothing_or_cannot_get_there(
    fault: Exception, kind: type[ContradaError]
) -> None:
    with pytest.raises(kind, match=f"^{FAR}: cannot be read: "):
        geoparquet._list_files(session_that(fault), [FAR])


@pytest.mark.parametrize(
    ("uri", "fault", "kind"),
    [
        (FAR, OSError("no answer"), Unavailable),
        (FAR, FileNotFoundError(errno.ENOENT, "no such key"), InvalidInput),
        (NEAR, OSError("damaged"), InvalidInput),
        (NEAR, PermissionError(errno.EACCES, "denied"), Unavailable),
    ],
)
def test_a_file_that_is_out_of_reach_is_not_a_damaged_one(
    uri: str, fault: OSError, kind: type[ContradaError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise fault

    filesystem = SimpleNamespace(open_input_file=fail)
    monkeypatch.setattr(geoparquet, "open_uri", lambda _: (filesystem, "x.parquet"))
    with pytest.raises(kind, match=uri):
        geoparquet._read_footer(uri, None)


def test_a_server_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise OSError("HDFS connection failed")

    fake = SimpleNamespace(FileSystem=SimpleNamespace(from_uri=fail))
    arrow = SimpleNamespace(fs=fake, ArrowException=pa.ArrowException)
    monkeypatch.setattr("contrada.spark.uris.pa", arrow)
    with pytest.raises(Unavailable, match="cannot be opened: HDFS connection failed"):
        uris.open_uri("hdfs://host/x")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        uris.open_uri(NEAR)


@pytest.mark.parametrize("uri", ["s3a://b/x", "HDFS://h/x", "gs://b/x"])
def test_a_uri_is_remote_unless_it_is_a_file(uri: str) -> None:
    assert uris.is_remote(uri)
    assert not uris.is_remote(NEAR)
    assert not uris.is_remote("FILE:/x")
    assert not uris.is_remote("/tmp/x")
