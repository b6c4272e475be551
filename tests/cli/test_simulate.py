"""`contrada simulate`: the dump, checked by itself; refusals; failures that can be replayed."""

import errno
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from contrada.cli import main

SMALL = ["simulate", "--peers", "30", "--events", "20"]
Peers = dict[int, dict[str, Any]]


def read_dump(folder: Path, *args: str) -> dict[str, Any]:
    """Run it; the dump, in which at least the shape is as it should be."""
    path = folder / "run.json"
    assert main([*SMALL, *args, "--dump", str(path)]) == 0
    dump: dict[str, Any] = json.loads(path.read_text())
    assert list(dump) == ["m", "M", "peers", "events"]
    assert all(list(peer) == ["id", "alive", "filter", "levels"] for peer in dump["peers"])
    return dump


def union(boxes: list[list[float]]) -> list[float]:
    k = len(boxes[0]) // 2
    return [min(b[i] for b in boxes) for i in range(k)] + [
        max(b[i] for b in boxes) for i in range(k, 2 * k)
    ]


def measure(box: list[float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def assert_legal(dump: dict[str, Any]) -> None:
    """Definition 3.1, from nothing but the JSON: a walk down from the one root reaches all."""
    peers = {peer["id"]: peer for peer in dump["peers"] if peer["alive"]}
    for peer in peers.values():
        assert [row["level"] for row in peer["levels"]] == list(range(len(peer["levels"])))
        assert all(row["parent"] == peer["id"] for row in peer["levels"][:-1])
    tops = {id_: peer["levels"][-1] for id_, peer in peers.items()}
    (root,) = [id_ for id_, top in tops.items() if top["parent"] in (id_, None)]
    reached: list[int] = []
    walk(root, tops[root]["level"], peers, dump, reached)
    assert sorted(reached) == sorted(peers)


def walk(id_: int, level: int, peers: Peers, dump: dict[str, Any], reached: list[int]) -> None:
    row = peers[id_]["levels"][level]
    if level == 0:
        assert row["children"] == []
        assert row["mbr"] == peers[id_]["filter"]
        reached.append(id_)
        return
    is_root = level == len(peers[id_]["levels"]) - 1 and row["parent"] in (id_, None)
    assert id_ in row["children"]
    assert (2 if is_root else dump["m"]) <= len(row["children"]) <= dump["M"]
    boxes = {child: peers[child]["levels"][level - 1]["mbr"] for child in row["children"]}
    assert row["mbr"] == union(list(boxes.values()))
    assert measure(boxes[id_]) >= max(map(measure, boxes.values())) - 1e-12
    for child in row["children"]:
        assert child == id_ or len(peers[child]["levels"]) == level
        assert peers[child]["levels"][level - 1]["parent"] == id_
        walk(child, level - 1, peers, dump, reached)


def assert_delivered(dump: dict[str, Any]) -> None:
    """Each living peer whose filter holds the point has received it, once, and nobody else."""
    alive = [peer for peer in dump["peers"] if peer["alive"]]
    for event in dump["events"]:
        x, y = event["point"]
        wanted = [
            peer["id"]
            for peer in alive
            if peer["filter"][0] <= x <= peer["filter"][2]
            and peer["filter"][1] <= y <= peer["filter"][3]
        ]
        assert sorted(event["received"]) == sorted(wanted)
        assert {*wanted, event["publisher"]} <= set(event["visited"])
        assert set(event["visited"]) <= {peer["id"] for peer in alive}


@pytest.mark.parametrize("workload", ["uniform", "clustered", "containment"])
@pytest.mark.parametrize("tree", [[], ["--plain"]])
def test_after_crashes_and_corruption_the_dump_shows_a_legal_tree_that_delivers(
    tmp_path: Path, workload: str, tree: list[str]
) -> None:
    args = ["--workload", workload, "--crash", "0.3", "--corrupt", "0.2", "--seed", "4", *tree]
    dump = read_dump(tmp_path, *args)
    assert (dump["m"], dump["M"], len(dump["peers"]), len(dump["events"])) == (4, 10, 30, 20)
    dead = [peer for peer in dump["peers"] if not peer["alive"]]
    assert len(dead) == 9
    assert all(peer["levels"] == [] and len(peer["filter"]) == 4 for peer in dead)
    assert_legal(dump)
    assert_delivered(dump)


def test_the_tree_has_the_children_that_were_asked_for(tmp_path: Path) -> None:
    args = ["--min-children", "2", "--max-children", "5", "--split", "rstar", "--join", "root"]
    dump = read_dump(tmp_path, *args, "--plain")
    assert (dump["m"], dump["M"]) == (2, 5)
    assert_legal(dump)
    assert_delivered(dump)


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    args = [*SMALL, "--crash", "0.2", "--corrupt", "0.2", "--churn", "1", "--seed", "9"]
    for name in ("a.json", "b.json"):
        assert main([*args, "--dump", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.json", "b.json"]


def test_json_is_the_last_line_of_stdout_and_the_table_goes_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*SMALL, "--plain", "--crash", "0.2", "--json"]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    figures = json.loads(line)
    assert (figures["peers"], figures["living"], figures["crashed"]) == (30, 24, 6)
    assert (figures["false_negatives"], figures["duplicates"], figures["problems"]) == (0, 0, [])
    assert 0 <= figures["false_positive_share"] < 1
    assert figures["rounds_to_heal"] >= 0
    assert "false positives" in said.err


def test_a_run_without_events_has_no_figures_of_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL[:3], "--plain", "--events", "0", "--json"]) == 0
    said = capsys.readouterr()
    assert "false positives" not in said.err
    assert json.loads(said.out)["messages_per_match"] is None


def test_a_run_that_fails_says_why_and_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    args = ["--seed", "8", "--plain", "--crash", "0.25", "--rounds-max", "0"]
    assert main([*SMALL, *args, "--json", "--dump", str(tmp_path / "run.json")]) == 1
    first = capsys.readouterr()
    assert "building: not legal after 0 rounds" in first.err
    assert "seed 8" in first.err
    replay = json.loads(first.out)["replay"]
    assert f"\n  {replay}\n" in first.err
    program, *words = shlex.split(replay)
    assert program == "contrada"
    assert main([*words, "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["problems"] == json.loads(first.out)["problems"]
    assert json.loads((tmp_path / "run.json").read_text())["events"] == []


@pytest.mark.parametrize("suffix", ["html", "png"])
@pytest.mark.parametrize("faults", [[], ["--crash", "0.3", "--corrupt", "0.2", "--loss", "0.1"]])
def test_a_run_is_drawn_in_one_file(tmp_path: Path, suffix: str, faults: list[str]) -> None:
    path = tmp_path / f"run.{suffix}"
    assert main([*SMALL, *faults, "--plain", "--rounds", "5", "--animate", str(path)]) == 0
    content = path.read_bytes()
    assert len(content) < 5_000_000
    if suffix == "png":
        assert content.startswith(b"\x89PNG")
    else:
        assert b"{{" not in content
        assert b"http://" not in content
        assert b"https://" not in content
        start = content.index(b'<script id="data" type="application/json">')
        data = content[start:].split(b">", 1)[1].split(b"</script>", 1)[0]
        story = json.loads(data)
        assert len(story["filters"]) == 30
        assert story["frames"][-1]["faults"] == 0
        assert len(story["events"]) == 20


def test_a_run_that_fails_is_drawn_too(tmp_path: Path) -> None:
    for name in ("run.html", "run.png"):
        args = [*SMALL, "--rounds-max", "0", "--animate", str(tmp_path / name)]
        assert main(args) == 1
        assert (tmp_path / name).stat().st_size > 1_000


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--peers", "1"], "--peers 1: must be from 2 to 1,000,000"),
        (["--crash", "1.5"], "--crash 1.5: must be a share from 0 to 1"),
        (["--corrupt", "-0.1"], "--corrupt -0.1: must be a share from 0 to 1"),
        (["--loss", "1"], "--loss 1.0: must be"),
        (["--seed", "-1"], "--seed -1: must be 0 or more"),
        (["--min-children", "6"], "--min-children 6: must be at least 2, and at most half of"),
        (["--max-children", "33"], "--max-children 33: must be 32 or fewer"),
        (["--dump", "no/run.json"], "--dump no/run.json: there is no folder no"),
        (["--dump", "."], "--dump .: is a folder"),
        (["--animate", "run.gif"], "--animate run.gif: must end in .html or .png"),
        (["--animate", "a.html", "--dump", "./a.html"], "--animate a.html is also --dump"),
        (["--animate", "a.html", "--peers", "6000"], "--peers is 6000"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    args: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *args]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert (said.out, line.startswith("contrada: ")) == ("", True)
    assert words in line
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text("from another day")

    def fail(_from: Path, _to: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    assert main([*SMALL, "--plain", "--dump", str(path)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    assert path.read_text() == "from another day"


def test_a_dump_goes_where_a_link_points_to_and_a_pipe_stays_one(tmp_path: Path) -> None:
    link, target, pipe = tmp_path / "link", tmp_path / "target", tmp_path / "pipe"
    link.symlink_to(target)
    os.mkfifo(pipe)
    assert main(["simulate", "--peers", "3", "--dump", str(link)]) == 0
    assert link.is_symlink()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["simulate", "--peers", "3", "--dump", str(pipe)]) == 0
        assert pipe.is_fifo()
        assert os.read(reader, 10**6) == target.read_bytes()
    finally:
        os.close(reader)


@pytest.mark.parametrize(("option", "name"), [("--dump", "dump.json"), ("--animate", "tree.html")])
def test_a_file_that_cannot_be_written_is_named_with_its_option(
    option: str,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_full(self: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", is_full)
    path = tmp_path / name
    assert main([*SMALL, option, str(path)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"contrada: {option} {path}: cannot be written: No space left on device"
    assert list(tmp_path.iterdir()) == []
