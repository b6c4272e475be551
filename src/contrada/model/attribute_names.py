"""What the name of an attribute may be, wherever a subscription states one."""

from typing import Any

from contrada.errors import InvalidInput
from contrada.limits import NAME_LENGTH_MAX, NAME_PARTS_MAX
from contrada.model.unicode import is_unicode
from contrada.showing import brief, brief_text


def find_name_fault(name: str) -> str | None:
    """Find what is wrong with the name of an attribute; None where nothing is."""
    if len(name) > NAME_LENGTH_MAX:
        return (
            f"the name of an attribute has {len(name):,} characters, more than "
            f"{NAME_LENGTH_MAX:,} (NAME_LENGTH_MAX): {brief_text(name)}"
        )
    parts = name.count(".") + 1
    if parts > NAME_PARTS_MAX:
        return (
            f"the name of an attribute has {parts:,} parts between dots, more than "
            f"{NAME_PARTS_MAX} (NAME_PARTS_MAX): {brief_text(name)}"
        )
    return None if is_unicode(name) else f"the name {brief(name)} is not valid Unicode"


def read_attribute(value: Any, place: str) -> str:
    """Read the name of an attribute; anything but a text that is not blank is refused."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"the name of an attribute must be a non-empty string, not {brief(value)}", place=place
        )
    fault = find_name_fault(value)
    if fault is not None:
        raise InvalidInput(fault, place=place)
    return value


def is_attribute(value: Any) -> bool:
    """Whether a value is the name of an attribute."""
    return isinstance(value, str) and bool(value) and find_name_fault(value) is None
