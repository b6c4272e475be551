"""Values of a stranger's in messages: short, whatever they are."""


def show(value: object, length_max: int = 40) -> str:
    """Give the text of a value, cut to a length; one that is nested too deep for it has none."""
    try:
        text = str(value)
    except (RecursionError, ValueError):  # the latter: integers of too many digits
        return f"a {type(value).__name__} that is nested or long beyond words"
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"
