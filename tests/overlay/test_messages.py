"""The tables and the drawing of messages and states in docs/overlay.md are what the code says."""

import re
from pathlib import Path

import pytest

import overlay_diagram
from overlay_code import CAUSES, find_arrows, find_causes

PAGE = Path(__file__).parents[2] / "docs" / "overlay.md"
NEVER = r"(?!)"

# For each state the statements with which it begins, and with which it ends.
STATES = {
    "root": (r"state\.be_root\(\)", NEVER),
    "another parent": (
        r"(state|self)\.move_to\(.*\)|state\.parent, state\.heard = \(refuse\.above, .*",
        NEVER,
    ),
    "bridge": (
        r"self\.bridge = self\.parent",
        r"state\.bridge = None|state\.heir, state\.bridge = .*",
    ),
    "asking": (r"ask\(.*\)", r"state\.asked = NEVER"),
    "leader": (
        r"state\.levels\.append\(.*\)",
        r"state\.truncate\(.*\)|state\.levels\.pop\(\)",
    ),
    "bound": (r"state\.promise = promise", r"state\.promise = None"),
    "deputy": (r"state\.copy = copy", r"state\.copy = None|state\.heir = state\.copy = None"),
    "offered": (r"seeking\.home, .*", r"seeking\.home = None"),
    "left": (r"self\._has_left = True", r"self\._has_left = False"),
}
# What conditions in the code rule out, though the statements are there.
RULED_OUT = {("root", "Report"): "a deputy that steps in has a copy, and so a parent"}


def rows(first: str) -> dict[str, list[str]]:
    """The table whose head begins with a cell, by its first column."""
    text = PAGE.read_text().split(f"\n| {first} |")[1].split("\n\n")[0]
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    return {name: rest for name, *rest in cells}


def named(cell: str) -> set[str]:
    """The causes that a cell names."""
    return set(re.findall(r"\w+", cell)) & set(CAUSES)


def test_the_table_has_every_message_and_what_it_makes_a_peer_send() -> None:
    table = rows("what happens")
    assert list(table) == CAUSES
    assert {name: named(cells[-1]) for name, cells in table.items()} == find_arrows()


@pytest.mark.parametrize("state", STATES)
def test_a_state_begins_and_ends_with_what_the_table_says(state: str) -> None:
    _, *cells = rows("state")[state]
    for cell, pattern in zip(cells, STATES[state], strict=True):
        expected = set() if pattern == NEVER else find_causes(pattern)
        assert named(cell) == {cause for cause in expected if (state, cause) not in RULED_OUT}


def test_the_table_has_no_other_states() -> None:
    assert rows("state").keys() == STATES.keys()


def test_every_message_has_its_place_in_the_drawing() -> None:
    assert overlay_diagram.PLACES.keys() == set(CAUSES)


def test_the_drawing_is_what_the_code_gives() -> None:
    assert overlay_diagram.IMAGE.read_text() == overlay_diagram.draw(), (
        "draw it anew: python tests/overlay_diagram.py"
    )
