"""The picture in docs/transitions.md is what the code of that page gives."""

import track_diagram


def test_the_drawing_of_the_page_is_what_its_code_gives() -> None:
    assert track_diagram.IMAGE.read_text() == track_diagram.draw(), (
        "draw it anew: python tests/track_diagram.py"
    )
