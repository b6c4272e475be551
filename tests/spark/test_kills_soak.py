"""What is killed while a job runs changes nothing: not its rows, and not its counts.

One task of the job says through a pipe who it is, and then waits for ever. So the kill always comes
when the task has read some rows and has more to read; when it runs again, it does not wait.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]

PLANS = ("broadcast", "partitioned")
# Before the match events are lost, after it answers and, where there was a shuffle, what it wrote.
KILLS = (("executor", "before"), ("executor", "after"), ("worker", "before"), ("worker", "after"))

# A process of its own, since a process has one session, and the other tests have theirs.
SCRIPT = """
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import contrada.spark

BATCHES_BEFORE = 2


class Hold:
    '''Lets rows pass; where there is a pipe, the first task that comes writes to it and waits.'''

    def __init__(self, pipe):
        self.pipe = pipe

    def __call__(self, batches):
        for number, batch in enumerate(batches):
            if number == BATCHES_BEFORE and self.is_first():
                Path(self.pipe).write_text(str(os.getpid()))
                signal.pause()
            yield batch

    def is_first(self):
        try:
            os.rename(self.pipe + ".new", self.pipe)
        except FileNotFoundError:
            return False
        return True


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def choose(worker, victim):
    '''The worker that waits, or the executor two generations above; a process of ours.'''
    pid = worker if victim == "worker" else parent(parent(worker))
    name = {"worker": b"pyspark", "executor": b"CoarseGrainedExecutorBackend"}[victim]
    assert name in Path(f"/proc/{pid}/cmdline").read_bytes()
    ancestor = pid
    while ancestor != os.getpid():
        ancestor = parent(ancestor)
        assert ancestor > 1, f"{pid} is not ours"
    return pid


def collect(answer):
    rows = answer.select("event", "subscription").toArrow()
    return sorted(zip(rows["event"].to_pylist(), rows["subscription"].to_pylist()))


def run(plan, victim, place):
    pipe = os.path.abspath(f"{plan}-{victim}-{place}")
    hold = Hold(pipe)
    held = events.mapInArrow(hold, events.schema) if place == "before" else events
    matched = contrada.spark.match(held, zones, plan=plan)
    answer = matched.mapInArrow(hold, matched.schema) if place == "after" else matched
    os.mkfifo(pipe + ".wait")
    os.link(pipe + ".wait", pipe + ".new")  # planning has looked at events too, and did not wait
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(collect, answer)
        worker = int(Path(pipe + ".wait").read_text())
        os.kill(choose(worker, victim), signal.SIGKILL)
        rows = found.result()
    counts = contrada.spark.counts(matched)
    return {
        "rows": len(rows),
        "missing": sorted(set(expected) - set(rows))[:9],
        "added": sorted(set(rows) - set(expected))[:9],
        "counts": [counts.events, counts.evaluated, counts.set_aside],
    }


spark = contrada.spark.session(
    "local-cluster[2,1,1024]",
    config={
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.shuffle.partitions": "4",
    },
)
events = spark.range(0, 4000, 1, 4).selectExpr(
    "id", "concat('POINT(', id % 80, ' ', cast(id / 80 as int), ')') AS geometry"
)
zones = spark.range(1, 50).selectExpr(
    "id", "concat('POLYGON((', id, ' 0, ', id + 9, ' 0, ', id, ' ', id, ', ', id, ' 0))') geometry"
)
expected = collect(contrada.spark.match(events, zones))
results = {"undisturbed": {"rows": len(expected)}}
for case in json.loads(sys.argv[1]):
    print(case, file=sys.stderr, flush=True)
    results[" ".join(case)] = run(*case)
print(json.dumps(results))
spark.stop()
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each job found, by plan, victim and place."""
    cases = [(plan, *kill) for plan in PLANS for kill in KILLS]
    folder = tmp_path_factory.mktemp("kills")
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "script.py", json.dumps(cases)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, dict[str, Any]] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("victim", "place"), KILLS)
@pytest.mark.parametrize("plan", PLANS)
def test_a_kill_changes_neither_rows_nor_counts(
    results: dict[str, dict[str, Any]], plan: str, victim: str, place: str
) -> None:
    rows = results["undisturbed"]["rows"]
    assert rows > 4_000
    assert results[f"{plan} {victim} {place}"] == {
        "rows": rows,
        "missing": [],
        "added": [],
        "counts": [4_000, 4_000, 0],
    }
