"""`contrada match` as a process: interrupts, bounded memory, progress, pipes."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

MANY, FEW = 1_000_000, 100_000

COMMAND = [sys.executable, "-m", "contrada.cli", "match"]
MEASURED = [
    sys.executable,
    "-c",
    """
import re, sys
import numpy as np
from contrada.cli import main
from contrada.kernels.packed_tree import find_points, pack_boxes
# Numba takes the same memory for few points as for many, but would be loaded for many alone.
find_points(pack_boxes(np.array([[0.0, 0.0, 9.0, 9.0]])), np.ones(1), np.ones(1))
code = main(sys.argv[1:])
status = open("/proc/self/status").read()  # ru_maxrss would begin with the parent's memory
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
sys.exit(code)
""",
    "match",
]


def write_points(path: Path, count: int, payload_bytes: int = 0) -> None:
    """Points on a lattice of 10 by 10 as Parquet, perhaps with much that no format can shorten."""
    rng = np.random.default_rng(3)
    raw = np.zeros((count, 21), np.uint8)
    raw[:, :2] = 1  # little-endian, point
    raw[:, 5:] = (rng.integers(0, 10, (count, 2)) + 0.5).view(np.uint8)
    columns = {"id": pa.array(np.arange(count)), "geometry": as_binary(raw)}
    if payload_bytes:
        columns["payload"] = as_binary(rng.integers(0, 256, (count, payload_bytes), np.uint8))
    pq.write_table(pa.table(columns), path, row_group_size=50_000)


def as_binary(rows: NDArray[np.uint8]) -> pa.Array:
    count, size = rows.shape
    offsets = pa.py_buffer(np.arange(0, size * count + 1, size, dtype=np.int32))
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(rows)])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with few points, many points, and zones: two halves, and one for engine `scan`."""
    folder = tmp_path_factory.mktemp("plain")
    write_points(folder / "few.parquet", FEW)
    write_points(folder / "many.parquet", MANY)
    west, east = "POLYGON((0 0,5 0,5 10,0 10,0 0))", "POLYGON((5 0,10 0,10 10,5 10,5 0))"
    (folder / "zones.csv").write_text(f'id,wkt\nwest,"{west}"\neast,"{east}"\n')
    (folder / "slow.csv").write_text('id,wkt\none,"POLYGON((0 0,9.1 0,0 9,0 0))"\n')
    yield folder
    for path in folder.iterdir():
        path.unlink()


def open_terminal() -> tuple[int, int]:
    """A terminal of a usual size: our end, and that of a process."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    return ours, theirs


def read_until(terminal: int, word: bytes) -> bytes:
    """What a process writes to its terminal, up to a word or, without it, up to the end."""
    heard = b""
    while word not in heard:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other end is closed
            piece = b""
        if not piece:
            break
        heard += piece
    return heard


@pytest.mark.parametrize(
    ("number", "word", "threads"),
    [
        (signal.SIGINT, b"interrupted", []),
        (signal.SIGINT, b"interrupted", ["--threads", "1"]),
        (signal.SIGTERM, b"terminated", []),
        (signal.SIGTERM, b"terminated", ["--threads", "1"]),
    ],
)
def test_a_signal_leaves_the_files_as_they_were(
    number: signal.Signals, word: bytes, threads: list[str], plain: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.parquet", tmp_path / "bad.csv"
    old.write_text("from another day")
    files: list[str | Path] = ["-o", old, "--quarantine", new, "--map", tmp_path / "map.html"]
    terminal, stderr = open_terminal()
    with subprocess.Popen(
        [*COMMAND, plain / "slow.csv", plain / "many.parquet", *files, "--engine=scan", *threads],
        stdout=subprocess.PIPE,
        stderr=stderr,
    ) as process:
        os.close(stderr)
        heard = read_until(terminal, b"matching")
        assert len(list(tmp_path.iterdir())) == 3, "both outputs are being written"
        process.send_signal(number)
        heard += read_until(terminal, b"nothing was written")
        stdout, _ = process.communicate()
    os.close(terminal)
    assert process.returncode == 128 + number
    assert b"contrada: %s; nothing was written" % word in heard
    assert stdout == b""
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_text() == "from another day"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("payload_bytes", "growth_max_mb"),
    [(0, 95), (200, 150)],
)
def test_ten_times_the_events_need_hardly_more_memory(
    payload_bytes: int, growth_max_mb: int, plain: Path, tmp_path: Path
) -> None:
    peaks = []
    for count in (FEW, MANY):
        events, out = tmp_path / f"{count}.parquet", tmp_path / "pairs.parquet"
        write_points(events, count, payload_bytes)
        args: list[str | Path] = [plain / "zones.csv", events, "-o", out, "--threads", "1"]
        done = subprocess.run([*MEASURED, *args], capture_output=True, text=True, check=True)
        events.unlink()
        peaks.append(int(done.stdout.splitlines()[-1]))
        assert pq.ParquetFile(out).metadata.num_rows == count
    assert peaks[1] - peaks[0] < growth_max_mb, f"{peaks} MB"


def test_progress_goes_to_stderr_and_never_to_stdout(plain: Path) -> None:
    terminal, stderr = open_terminal()
    args = ["--engine", "scan", "--threads", "1", "-o", "-"]
    with subprocess.Popen(
        [*COMMAND, plain / "zones.csv", plain / "few.parquet", *args],
        stdout=subprocess.PIPE,
        stderr=stderr,
    ) as process:
        os.close(stderr)
        lines = process.communicate()[0].splitlines()
    heard = read_until(terminal, b"no such word")
    os.close(terminal)
    assert process.returncode == 0
    assert b"matching" in heard
    assert b"100k" in heard, "the number of events"
    assert len(lines) == FEW + 1
    assert {line.split(b",")[1] for line in lines[1:]} == {b"west", b"east"}


def test_rows_on_a_terminal_show_control_characters_as_escapes(tmp_path: Path) -> None:
    event = "\x1b]0;owned\x07\u202ecafé"
    (tmp_path / "zones.csv").write_text('id,wkt\nhere,"POLYGON((0 0,4 0,4 4,0 4,0 0))"\n')
    (tmp_path / "events.csv").write_text(f"id,lon,lat\n{event},1,1\n", encoding="utf-8")
    args = [*COMMAND, str(tmp_path / "zones.csv"), str(tmp_path / "events.csv"), "-o", "-"]
    terminal, stdout = open_terminal()
    with subprocess.Popen(args, stdout=stdout, stderr=subprocess.DEVNULL) as process:
        os.close(stdout)
        shown = read_until(terminal, b"no such word")
    os.close(terminal)
    assert process.returncode == 0
    assert shown.decode().splitlines() == [
        "event,subscription",
        "\\x1b]0;owned\\x07\\u202ecafé,here",
    ]
    piped = subprocess.run(args, capture_output=True, check=True).stdout
    assert piped.decode() == f"event,subscription\n{event},here\n"


def test_short_work_is_silent_on_stderr(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "event.csv").write_text("lon,lat\n1,1\n")
    script = "import sys; from contrada.cli import main, progress; "
    script += "progress._MOMENT_S = 600; sys.exit(main(sys.argv[1:]))"  # on a slow machine, too
    files = [str(plain / "zones.csv"), str(tmp_path / "event.csv")]
    args = [sys.executable, "-c", script, "match", *files]
    done = subprocess.run(args, capture_output=True, check=True)
    assert done.stderr == b""


def test_a_reader_that_goes_away_is_no_error(plain: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, plain / "zones.csv", plain / "many.parquet", "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"event,subscription\n"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 0


@pytest.mark.parametrize("closed", ["stdout", "stderr", "both"])
def test_a_closed_stream_takes_no_result_away(plain: Path, tmp_path: Path, closed: str) -> None:
    out = tmp_path / "out.csv"
    redirect = {"stdout": ">&-", "stderr": "2>&-", "both": ">&- 2>&-"}[closed]
    (tmp_path / "event.csv").write_text("lon,lat\n1,1\n")
    command = shlex.join([*COMMAND, str(plain / "zones.csv"), str(tmp_path / "event.csv")])
    run = subprocess.run(
        ["sh", "-c", f"{command} -o {out} {redirect}"], capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert len(out.read_bytes().splitlines()) > 1
    rows = subprocess.run(
        ["sh", "-c", f"{command} -o - {redirect}"], capture_output=True, check=False
    )
    if closed == "stderr":
        assert (rows.returncode, rows.stdout) == (0, out.read_bytes())
    else:
        assert rows.returncode == 2
        assert rows.stderr == b"" or rows.stderr.endswith(b"it is closed\n")
