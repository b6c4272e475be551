"""What is said while a command works, and where the first bad row of a Spark job is."""

import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from contrada import Matcher
from contrada.cli import progress
from contrada.cli.spark_start import our_errors
from contrada.cli.terminal import unbroken_stderr
from contrada.errors import InvalidInput, MissingPackage, RowsLost, Unavailable, write_line
from contrada.files import read_rows
from contrada.matcher.inside import plan_run
from unread import unread_streams

BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"


def test_what_follows_a_bar_begins_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_MOMENT_S", 0.0)
    with progress.bar("matching", 2) as shown:
        shown.update(2)
    said = capsys.readouterr().err
    assert "matching: 100%" in said
    assert said.endswith("\n")


def test_a_bar_that_nobody_sees_keeps_no_other_one_from_being_shown() -> None:
    def wait() -> None:
        with progress.waiting("starting"), progress.saying("starting"):
            pass

    with unread_streams(), unbroken_stderr():
        waiters = [threading.Thread(target=wait, daemon=True) for _ in range(2)]
        for waiter in waiters:
            waiter.start()
            waiter.join(60)  # tqdm's lock is held for ever by a thread that failed with it
            assert not waiter.is_alive()
        assert sys.stderr.write("more") == 4


def test_the_first_bad_row_is_named_whichever_task_fails_first(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add("all", geometry="POLYGON((0 0,4 0,4 4,0 4,0 0))")
    shapes = [BOW_TIE if row in (3, 8) else "POINT(1 1)" for row in range(10)]
    run = plan_run(matcher, read_rows(pa.table({"geometry": shapes}), batch_rows=2))
    for named, expected in ((8, 3), (3, 3), (1, 1)):
        error = InvalidInput("odd", place="column 'geometry'", row=named)
        words = f"^table, row {expected}, column 'geometry': "
        with pytest.raises(InvalidInput, match=words), our_errors(run):
            raise RuntimeError(f"Traceback:\ncontrada: {error}\n{write_line(error)}\n")


def test_what_a_worker_lacks_is_not_taken_for_invalid_input() -> None:
    for kind in (Unavailable, MissingPackage, RowsLost):
        with pytest.raises(kind, match=r"^staging: full$"), our_errors():
            raise RuntimeError(f"Traceback:\n{write_line(kind('staging: full'))}\n")
