"""What the commands say: no control character of a stranger's, and the right one to blame."""

import errno
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from contrada.cli import main
from contrada.cli.terminal import one_line, plain_warnings, show, visible
from unread import unread_streams

ESCAPE = "\x1b]0;owned\x07\x1b[31m"
ZONES = 'id,wkt,where\na,"POLYGON((0 0,4 0,4 4,0 4,0 0))",speed > 1\n'
COMMAND = [sys.executable, "-m", "contrada.cli"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: subscriptions, and events with a bad name in a file with another."""
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "events.csv").write_text("id,lon,lat\n1,1,1\n")
    (tmp_path / "evil.csv").write_text(f"id,lon,lat,{ESCAPE}\n1,1,1,1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_control_characters_become_escapes_and_the_rest_stays() -> None:
    assert visible("é\ttab\nline 東 👩‍🌾") == "é\ttab\nline 東 👩‍🌾"
    assert visible("\x1b[2J\r\x9b\x7f\u202e\u2028\udcff") == (
        r"\x1b[2J\x0d\x9b\x7f\u202e\u2028\udcff"
    )
    assert one_line("a\nb\x0bc") == r"a b\x0bc"


@pytest.mark.parametrize(
    "arguments",
    [
        ["match", "zones.csv", "evil.csv"],
        ["match", "zones.csv", "evil.csv", "--event-id", "nr"],
        ["match", "zones.csv", "evil.csv", "--strict"],
        ["match", "zones.csv", "events.csv", "-o", f"{ESCAPE}.csv"],
        ["match", f"{ESCAPE}.csv", "events.csv"],
        ["match", "zones.csv", "events.csv", "-o", os.fsdecode(b"\xff\x1b.csv")],
        ["explain", f"name = '{ESCAPE}'"],
        ["explain", f"{ESCAPE} ="],
        ["simulate", "--dump", f"{ESCAPE}/x.json"],
    ],
)
def test_no_command_writes_an_escape_sequence_of_a_stranger(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    main(arguments)
    said = capsys.readouterr()
    assert "\\x1b" in said.out + said.err
    for text in (said.out, said.err):
        assert text == visible(text)


def test_what_argparse_says_is_visible_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["match", "zones.csv", "events.csv", ESCAPE])
    assert "\x1b" not in capsys.readouterr().err


def test_a_warning_is_one_line_without_escape_sequences(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with plain_warnings():
        line = warnings.formatwarning(f"column {ESCAPE}\nmixed", UserWarning, "json_rows.py", 7)
    assert line == "note: column \\x1b]0;owned\\x07\\x1b[31m mixed\n"


def test_a_command_whose_words_nobody_reads_writes_its_files(folder: Path) -> None:
    with unread_streams():
        code = main(["match", "zones.csv", "events.csv", "-o", "out.csv"])  # which has a note
    assert (code, (folder / "out.csv").read_text()) == (0, "event,subscription\n")


def test_a_failure_is_one_whether_or_not_anybody_reads_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        show("a table")
        raise BrokenPipeError  # of a socket, say

    with unread_streams():
        assert main(["match", "zones.csv", "no-such.csv"]) == 2
        monkeypatch.setattr("contrada.cli.explain.run", fail)
        with pytest.raises(BrokenPipeError):
            main(["explain", "a = 1"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_stderr_takes_no_result_away(folder: Path) -> None:
    args = [*COMMAND, "match", "zones.csv", "events.csv", "-o", "out.csv"]
    with Path("/dev/full").open("wb") as full:
        subprocess.run(args, stderr=full, stdout=subprocess.PIPE, check=True)
    assert (folder / "out.csv").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["match", "zones.csv", "events.csv"],
        ["match", "zones.csv", "events.csv", "-o", "-"],
        ["explain", "a = 1"],
    ],
)
def test_a_full_stdout_is_blamed_on_stdout(folder: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == "contrada: stdout: cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize(
    ("option", "name"),
    [("-o", "out.csv"), ("--quarantine", "out.csv"), ("--map", "map.html"), ("--map", "map.png")],
)
def test_a_full_disk_is_blamed_on_the_file_that_was_written(
    folder: Path,
    option: str,
    name: str,
    number: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_full(self: Path, *_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", is_full)
    assert main(["match", "zones.csv", "events.csv", option, name]) == 2
    assert f"{name}: cannot be written: " in capsys.readouterr().err.splitlines()[-1]
    assert not list(folder.glob("*.tmp"))
    assert not (folder / name).exists()
