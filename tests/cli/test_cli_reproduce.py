"""`contrada reproduce` refuses what it cannot do before any experiment starts."""

from pathlib import Path

import geopandas
import pytest
import shapely

from contrada.cli import main
from contrada.cli.reproduce import PAPERS, _ScreenReporter
from contrada.reproduce.crtree import experiments

LAYERS = PAPERS["crtree"].layers


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The arguments of the experiments that would have run."""
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(experiments, "reproduce", lambda *given: calls.append(given))
    return calls


def make_layers(folder: Path) -> None:
    squares = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
    for name in LAYERS:
        geopandas.GeoDataFrame(geometry=squares).to_parquet(folder / f"{name}.parquet")


def test_a_folder_of_layers_that_is_not_there_is_refused(
    started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "crtree", "--quick", "--data", "nowhere"]) == 2
    assert "--data nowhere: no such folder" in capsys.readouterr().err
    assert not started


def test_all_layers_that_are_missing_are_named_and_no_folder_is_made(
    tmp_path: Path, started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    make_layers(tmp_path)
    for name in LAYERS[1:]:
        (tmp_path / f"{name}.parquet").unlink()
    folder = tmp_path / "figures"
    code = main(["reproduce", "crtree", "--data", str(tmp_path), "--folder", str(folder)])
    said = capsys.readouterr().err
    assert code == 2
    assert all(f"no {name}.parquet" in said for name in LAYERS[1:])
    assert LAYERS[0] not in said
    assert not folder.exists()
    assert not started


def test_a_broken_layer_is_refused_before_anything_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_layers(tmp_path)
    (tmp_path / f"{LAYERS[-1]}.parquet").write_text("nothing of the kind")
    folder = tmp_path / "figures"
    assert main(["reproduce", "crtree", "--data", str(tmp_path), "--folder", str(folder)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{LAYERS[-1]}.parquet: not a Parquet file" in said.err


@pytest.mark.parametrize("place", ["a-file", "a-file/sub", "/proc/x"])
def test_a_folder_that_cannot_be_made_is_refused(
    place: str, tmp_path: Path, started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").write_text("")
    folder = str(tmp_path / place)  # an absolute place stays what it is
    assert main(["reproduce", "crtree", "--quick", "--folder", folder]) == 2
    assert f"contrada: --folder {folder}: " in capsys.readouterr().err
    assert not started


def test_a_folder_that_cannot_be_written_to_is_refused(
    started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "crtree", "--quick", "--folder", "/proc"]) == 2
    assert "--folder /proc: cannot be written to: " in capsys.readouterr().err
    assert not started


def test_a_seed_below_zero_is_refused(
    started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "crtree", "--quick", "--seed", "-1"]) == 2
    assert "--seed must be a number >= 0, not -1" in capsys.readouterr().err


@pytest.mark.parametrize("is_quick", [True, False])
def test_how_long_it_takes_is_said_first_where_it_takes_long(
    is_quick: bool, tmp_path: Path, started: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--quick"] if is_quick else []
    assert main(["reproduce", "crtree", "--folder", str(tmp_path), *quick]) == 0
    said = capsys.readouterr()
    assert ("minutes; --quick takes under two" in said.err) != is_quick
    assert f"figures: {tmp_path}" in said.out
    assert len(started) == 1


def test_help_names_the_files_that_data_must_hold(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"{name}.parquet" in said for name in LAYERS)


def test_progress_goes_to_stderr_and_lines_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    screen = _ScreenReporter()
    with screen.watch("work", 2) as step:
        step()
        screen.say("a row")
        step()
    assert capsys.readouterr().out == "a row\n"
