"""What is asked of transitions as JSON: `transitions` of a subscription, and a tenant's settings.

Errors name the member by its JSON path. Durations are texts such as "30 s" or "10 min".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from contrada.errors import InvalidInput
from contrada.limits import NAME_LENGTH_MAX
from contrada.model.unicode import is_unicode
from contrada.showing import brief, listed
from contrada.transitions.durations import read_duration
from contrada.transitions.followed import (
    ALL_KINDS,
    CROSS_KIND,
    DWELL_KIND,
    NO_DWELL,
    read_kinds,
    read_metres,
)

Asked = TypeVar("Asked")

_MINUTE_US = 60_000_000
_OF_SUBSCRIPTIONS = ("kinds", "hysteresis", "cooldown", "dwell")
_OF_TENANTS = ("object", "time", "lateness", "silence", "ahead", "idle")


@dataclass(frozen=True, slots=True)
class FenceTerms:
    """What a subscription asks of transitions: `kinds` are bits, `dwell_us` NO_DWELL for none."""

    hysteresis_m: float = 0.0
    cooldown_us: int = 0
    dwell_us: int = NO_DWELL
    kinds: int = ALL_KINDS


def read_transitions(value: Any, place: str) -> FenceTerms | None:
    """Read the member `transitions` of a subscription; None where it asks for none."""
    if value is None or value is False:
        return None
    if value is True:
        return FenceTerms()
    if not isinstance(value, Mapping):
        raise InvalidInput(f"must be true or an object, not {brief(value)}", place=place)
    _refuse_unknown(value, _OF_SUBSCRIPTIONS, place)
    dwell = value.get("dwell")
    return FenceTerms(
        _at(f"{place}.hysteresis", read_metres, value.get("hysteresis", 0)),
        _read_time(value.get("cooldown", "0 s"), "cooldown", place),
        NO_DWELL if dwell is None else _read_time(dwell, "dwell", place, may_be_zero=False),
        _at(f"{place}.kinds", _read_kind_names, value.get("kinds")),
    )


def find_idle_terms(value: Any, *, is_fence: bool) -> list[str]:
    """Find what a member `transitions`, which was read before, asks for and can never have."""
    if not isinstance(value, Mapping):
        return []
    terms = read_transitions(value, "transitions")
    assert terms is not None
    named = terms.kinds if value.get("kinds") is not None else 0
    what_is = "needs a fence: one test of the geometry, by intersects, within or a distance"
    found = {
        "transitions.kinds: it names no transition, so nothing is ever delivered": terms.kinds == 0,
        f'transitions.kinds: "cross" {what_is}': bool(named & CROSS_KIND) and not is_fence,
        f"transitions.hysteresis: it {what_is}": terms.hysteresis_m > 0 and not is_fence,
        'transitions.kinds: "dwell" does nothing without `dwell`, which says how long': bool(
            named & DWELL_KIND
        )
        and terms.dwell_us == NO_DWELL,
        'transitions.dwell: it does nothing, since `kinds` lacks "dwell"': not terms.kinds
        & DWELL_KIND
        and terms.dwell_us != NO_DWELL,
    }
    return [sentence for sentence, is_idle in found.items() if is_idle]


def _read_kind_names(value: Any) -> int:
    if value is not None and not isinstance(value, str | list):
        raise InvalidInput(f"kinds must be a list of names of transitions, not {brief(value)}")
    names = [value] if isinstance(value, str) else value
    for name in names or ():
        if not isinstance(name, str):
            raise InvalidInput(f"a kind of transition is a text, not {brief(name)}")
    return read_kinds(names)


def _read_time(value: Any, name: str, place: str, *, may_be_zero: bool = True) -> int:
    path = f"{place}.{name}" if place else name
    if not isinstance(value, str):
        raise InvalidInput(
            f'{name} must be a duration such as "30 s" or "10 min", not {brief(value)}', place=path
        )

    def read(text: str) -> int:
        return read_duration(text, name, may_be_zero=may_be_zero, is_only_text=True)

    return _at(path, read, value)


def _at(place: str, read: Callable[[Any], Asked], value: Any) -> Asked:
    try:
        return read(value)
    except InvalidInput as error:
        raise error.within(place) from None


def _refuse_unknown(value: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in value:
        if name not in known:
            path = f"{place}.{brief(name).strip(chr(39))}" if place else brief(name)
            raise InvalidInput(f"there is no such member; there are {listed(known)}", place=path)


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """What a tenant says of its positions.

    `object` and `time` name the attributes that make an event a position. A position is applied
    once the clock is `lateness_us` past it; an object of which nothing was applied for `silence_us`
    leaves all that it visits (None: never). A time more than `ahead_us` after the broker's clock is
    refused. When no position has come for `idle_us`, the clock moves on with the broker's.
    """

    object: str = "object_id"
    time: str = "time"
    lateness_us: int = 0
    silence_us: int | None = None
    ahead_us: int = 10 * _MINUTE_US
    idle_us: int = _MINUTE_US


def read_tracking_settings(body: Any) -> TrackingSettings:
    """Read a tenant's settings; what is missing or null has its default."""
    if not isinstance(body, Mapping):
        raise InvalidInput(f"settings are a JSON object, not {brief(body)}")
    _refuse_unknown(body, _OF_TENANTS, "")
    given = {name: value for name, value in body.items() if value is not None}
    read: dict[str, Any] = {
        name: _read_attribute(given[name], name) for name in ("object", "time") if name in given
    }
    for name in ("lateness", "silence", "ahead", "idle"):
        if name in given:
            may_be_zero = name in {"lateness", "ahead"}
            read[f"{name}_us"] = _read_time(given[name], name, "", may_be_zero=may_be_zero)
    return TrackingSettings(**read)


def _read_attribute(value: Any, place: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH_MAX or not is_unicode(value):
        raise InvalidInput(f"must be the name of an attribute, not {brief(value)}", place=place)
    return value


def write_tracking_settings(settings: TrackingSettings) -> dict[str, Any]:
    """Write settings as a body that reads the same, without what is not set."""
    body: dict[str, Any] = {"object": settings.object, "time": settings.time}
    for name in ("lateness", "silence", "ahead", "idle"):
        value = getattr(settings, f"{name}_us")
        if value is not None:
            body[name] = write_duration(value)
    return body


def write_duration(us: int) -> str:
    """Write a duration in the largest unit that needs no decimals."""
    units = (("day", 86_400_000_000), ("h", 3_600_000_000), ("min", _MINUTE_US), ("s", 1_000_000))
    for unit, length in (*units, ("ms", 1_000)):
        if us % length == 0 and (us or unit == "s"):
            return f"{us // length} {unit}"
    return f"{us} us"
