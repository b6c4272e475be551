"""Options that are True or False.

What only looks like one, such as the text "no", would count as True, so it is refused.
"""

from typing import Any

import numpy as np

from contrada.errors import InvalidInput
from contrada.showing import brief


def check_flags(**flags: Any) -> None:
    """Refuse options, by their names, that are neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise InvalidInput(f"{name} must be True or False, not {brief(value)}")
