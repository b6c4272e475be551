"""Answers that are no success, as errors of our own, in the words of the broker."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NoReturn

from contrada.client.exchange import HttpAnswer
from contrada.errors import (
    BadRows,
    BrokerStarting,
    Conflict,
    ContradaError,
    Gone,
    InvalidInput,
    NotFound,
    OutOfSpace,
    Overloaded,
    Unavailable,
)
from contrada.showing import brief, brief_text

_KINDS: Mapping[int, type[InvalidInput]] = {404: NotFound, 409: Conflict, 410: Gone}
_BUSY = frozenset({429, 503})
_PROBLEM = "application/problem+json"
_STARTING = "starting"  # the code of its problem
_REDIRECTS, _ERRORS, _FAULTS = 300, 400, 500


def read_object(answer: HttpAnswer) -> dict[str, Any]:
    """Return the JSON object of an answer; raise the error that it is instead."""
    if not 200 <= answer.status < _REDIRECTS:
        refuse(answer)
    if not answer.body:
        return {}
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        shown = brief_text(answer.body[:200].decode(errors="replace"), 80)
        raise Unavailable(f"the server does not answer as a broker does: {shown}")
    return value


def refuse(answer: HttpAnswer) -> NoReturn:
    """Raise the error that an answer is, by who must act on it."""
    raise _make_error(answer, read_problem(answer), describe_answer(answer))


def describe_answer(answer: HttpAnswer) -> str:
    """Return what an answer that is no success says."""
    problem = read_problem(answer)
    detail = problem.get("detail") or problem.get("title")
    return detail if isinstance(detail, str) else _describe_status(answer)


def _make_error(answer: HttpAnswer, problem: Mapping[str, Any], words: str) -> ContradaError:
    status = answer.status
    if status == HTTPStatus.INSUFFICIENT_STORAGE:
        return OutOfSpace(words)
    wait_s = retry_after_s(answer)
    if is_starting(answer):
        remedy = "a client with a longer restart_s=… waits longer"
        return BrokerStarting(f"{words}; {remedy}", 1.0 if wait_s is None else wait_s)
    if status in _BUSY and (wait_s is not None or status == HTTPStatus.TOO_MANY_REQUESTS):
        return Overloaded(words, 1.0 if wait_s is None else wait_s)
    if status >= _FAULTS or status < _REDIRECTS:
        return Unavailable(words)
    if status < _ERRORS:
        shown = brief_text(answer.headers.get("location", "another address"), 200)
        return InvalidInput(f"the server redirects to {shown}: use that address")
    place, code = (_text(problem.get(name)) for name in ("place", "code"))
    words = words.removeprefix(f"{place}: ") if place else words
    rows = [] if status in _KINDS else _list_rows(problem.get("errors"))
    if rows:
        return BadRows(words, rows, len(rows))
    return _KINDS.get(status, InvalidInput)(words, place=place, code=code)


def read_problem(answer: HttpAnswer) -> dict[str, Any]:
    """Return what an answer says that went wrong; empty where a broker has not said it."""
    if answer.headers.get("content-type", "").partition(";")[0].strip().lower() != _PROBLEM:
        return {}
    with suppress(ValueError, RecursionError):
        value = json.loads(answer.body)
        if isinstance(value, dict):
            return value
    return {}


def is_starting(answer: HttpAnswer) -> bool:
    """Whether a broker says that it is being opened, and will take requests soon."""
    is_busy = answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    return is_busy and read_problem(answer).get("code") == _STARTING


def retry_after_s(answer: HttpAnswer) -> float | None:
    """Return for how long the server wants to be left alone; None where it does not say."""
    stated = answer.headers.get("retry-after", "").strip()
    if stated.isascii() and stated.isdigit():
        return float(stated[:9])
    with suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(stated)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


def _describe_status(answer: HttpAnswer) -> str:
    with suppress(ValueError):
        return f"the server answers {answer.status} {HTTPStatus(answer.status).phrase}"
    return f"the server answers {answer.status}"


def _list_rows(errors: Any) -> list[str]:
    """List what is wrong with each of several rows or events."""
    if not isinstance(errors, list):
        return []
    rows = []
    for error in errors:
        members = error if isinstance(error, Mapping) else {"detail": brief(error)}
        index, detail = members.get("index"), _text(members.get("detail"))
        rows.append(detail if index is None else f"event {index}: {detail}")
    return rows


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
