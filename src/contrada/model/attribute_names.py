"""What the name of an attribute may be, wherever a subscription states one."""

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
