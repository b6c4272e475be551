"""Which texts are Unicode: JSON and Python can spell half a character, UTF-8 and Arrow cannot."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Whether a text is without half a surrogate pair, and so can be written as UTF-8."""
    return text.isascii() or _SURROGATE.search(text) is None
