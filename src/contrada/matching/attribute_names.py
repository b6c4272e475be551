"""Names of attributes, as users give them."""

from typing import Any

from contrada.errors import InvalidInput
from contrada.limits import NAME_LENGTH_MAX
from contrada.model.unicode import is_unicode
from contrada.showing import brief, brief_text


def read_attribute(value: Any, place: str) -> str:
    """Read the name of an attribute; anything but a text that is not blank is refused."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{place}: the name of an attribute is a text, not {brief(value)}")
    if len(value) > NAME_LENGTH_MAX:
        raise InvalidInput(
            f"{place}: the name of an attribute has {len(value):,} characters, more than "
            f"{NAME_LENGTH_MAX:,} (NAME_LENGTH_MAX): {brief_text(value)}"
        )
    if not is_unicode(value):
        raise InvalidInput(f"{place}: the name {brief(value)} is not valid Unicode")
    return value


def is_attribute(value: Any) -> bool:
    """Whether a value is the name of an attribute."""
    try:
        read_attribute(value, "")
    except InvalidInput:
        return False
    return True
