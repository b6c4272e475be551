"""Snapshots of both formats as tests need them: as versions before format 2 wrote them, too."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada import Matcher
from contrada.files.sections import Sections, write_sections
from contrada.files.snapshot import write_snapshot
from contrada.matcher.inside import freeze
from contrada.matcher.saving import open_any, save_rows

FORMATS = (1, 2)


def save_as(format_: int, matcher: Matcher, path: Path) -> None:
    """Write a matcher in a format; `save` writes the newer one."""
    if format_ == 2:
        matcher.save(path)
        return
    save_rows(path, freeze(matcher), matcher._settings(matcher.crs))


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Give a snapshot other settings, and checksums that are right."""
    snapshot = open_any(path)
    if isinstance(snapshot, Sections):
        write_sections(path, settings, snapshot.columns)
    else:
        write_snapshot(path, snapshot.schema, settings, snapshot.batches())


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a snapshot of format 1 as anybody reads them, without what they lack."""
    rows: list[dict[str, Any]] = pa.ipc.open_file(path).read_all().to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def check_same(ours: Matcher, theirs: Matcher) -> None:
    """Check that matchers have the same subscriptions: ids, subscribers, trees and filters."""
    assert list(theirs) == list(ours)
    assert [type(id_) for id_ in theirs] == [type(id_) for id_ in ours]
    for id_ in ours:
        assert theirs.get(id_) == ours.get(id_)
        assert repr(theirs.get(id_).predicate) == repr(ours.get(id_).predicate)
        assert type(theirs.get(id_).subscriber) is type(ours.get(id_).subscriber)
