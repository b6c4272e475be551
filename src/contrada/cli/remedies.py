"""Errors in the words of the command line: what is wrong, and which option would help."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from contrada.errors import BadRows, InvalidInput, MissingPackage, Remedy, Unavailable

_EVENT_ID = "--event-id COLUMN names the column of event ids"
_SUBSCRIPTION_ID = "--id COLUMN names the column of subscription ids"
_QUARANTINE = "--quarantine FILE lists bad events and continues without them"

ON_THE_COMMAND_LINE: Mapping[Remedy, str | None] = {
    Remedy.REPAIR: "--repair mends what can be mended",
    Remedy.QUARANTINE_EVENTS: _QUARANTINE,
    Remedy.QUARANTINE_SUBSCRIPTIONS: "--quarantine-subscriptions FILE lists bad subscriptions and "
    "continues without them",
    Remedy.RETURN_BAD_EVENTS: _QUARANTINE,
    Remedy.REPLACE: None,
    Remedy.EVENT_ID: _EVENT_ID,
    Remedy.SUBSCRIPTION_ID: _SUBSCRIPTION_ID,
    Remedy.ROW_NUMBERS: "leave out --id to number the rows, and use --keep subscription.COLUMN "
    "to write that column beside the pairs",
    Remedy.SPARK_EVENT_ID: _EVENT_ID,
    Remedy.SPARK_SUBSCRIPTION_ID: _SUBSCRIPTION_ID,
    Remedy.LAYER: "--layer NAME names one of the events, --subscriptions-layer NAME one of the "
    "subscriptions",
    Remedy.OBJECT: "--object COLUMN names the column of objects",
    Remedy.TIME: "--time COLUMN names the column of times",
    Remedy.FILTERS_MAX: None,
}


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Put an option before the message of an error, which begins with what the option names."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{option} {error.message}", remedies=error.remedies) from error
    except MissingPackage:  # which names a package
        raise
    except Unavailable as error:
        raise Unavailable(f"{option} {error}") from error


def describe(error: InvalidInput) -> list[str]:
    """Return the lines that a person reads: one, or for many bad rows one each."""
    words = [ON_THE_COMMAND_LINE[remedy] for remedy in error.remedies]
    hints = "; ".join(dict.fromkeys(word for word in words if word is not None))
    if not isinstance(error, BadRows):
        return [f"{error.message}; {hints}" if hints else error.message]
    lines = [f"{error.message}:", *(f"  {row}" for row in error.rows)]
    return [*lines, hints] if hints else lines
