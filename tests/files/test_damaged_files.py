"""Every reader of a stranger's bytes ends in our errors, with a place: files damaged at random.

The last seed on stderr is the one that fails; `damage` with it makes the same bytes again. The long
run is in a child process, so that a crash is seen.
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from damaging import WRITERS, read_damaged

SEEDS = 60
SEEDS_OF_SOAK = 20_000
PACKAGES = {"x.fgb": "geopandas", "x.gpkg": "geopandas"}
RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from damaging import read_damaged
read_damaged(sys.argv[2], Path(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5])))
"""


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_bytes_are_refused_or_read(name: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES.get(name, "pyarrow"))
    read_damaged(name, tmp_path, range(SEEDS))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", WRITERS)
def test_much_damage_neither_ends_the_process_nor_gives_another_error(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip(PACKAGES.get(name, "pyarrow"))
    start = random.SystemRandom().randrange(10**9)
    seeds = [str(start), str(start + SEEDS_OF_SOAK)]
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", RUN, tests, name, str(tmp_path), *seeds],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
