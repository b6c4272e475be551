"""What a run of the simulator says when it is done: a table for people, or one JSON object."""

import json
from collections.abc import Mapping
from typing import Any

from contrada.simulation.outcome import Outcome, Settled

ReportRow = tuple[str, str, str]


def as_table(outcome: Outcome, seconds: float, files: Mapping[str, str]) -> str:
    """Write figures in lines: a name, a value, and what it means."""
    rows = [*_describe_overlay(outcome), *_describe_events(outcome)]
    rows.append(("seconds", f"{seconds:.1f}", ""))
    names, values = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = [f"{name:<{names}}  {value:>{values}}  {note}".rstrip() for name, value, note in rows]
    return "\n".join([*lines, *(f"{name:<{names}}  {path}" for name, path in files.items())])


def _describe_overlay(outcome: Outcome) -> list[ReportRow]:
    plan = outcome.plan
    kind = "the paper's tree, " if plan.plain else ""
    rows: list[ReportRow] = [
        ("peers alive", f"{len(outcome.states):,}", f"{plan.workload} filters, seed {plan.seed}"),
        ("left", f"{outcome.left:,}", "cleanly"),
        ("crashed", f"{outcome.crashed:,}", ""),
        ("corrupted", f"{outcome.corrupted:,}", ""),
        (
            "height",
            f"{outcome.height}",
            f"{kind}m {plan.min_children}, M {plan.max_children}, {plan.split} split",
        ),
        *_describe_rounds("built", outcome.built),
        *_describe_rounds("healed", outcome.healed),
    ]
    rest = outcome.messages_at_rest
    if rest is not None:
        rows.append(("messages at rest", f"{rest:.2f}", "per peer and round"))
    if outcome.overflown:
        rows.append(("overflown", f"{outcome.overflown:,}", "messages lost to full inboxes"))
    return rows


def _describe_events(outcome: Outcome) -> list[ReportRow]:
    if not outcome.events:
        return []
    found, shares = outcome.score, _measure(outcome)
    rows = [
        ("events", f"{len(outcome.events):,}", ""),
        ("matches", f"{found.matches:,}", "pairs of an event and a peer that wants it"),
        ("missed", f"{found.missed:,}", ""),
        ("doubled", f"{found.doubled:,}", ""),
        (
            "false positives",
            f"{100 * shares['false_positive_share']:.2f} %",
            "of living peers x events",
        ),
    ]
    of_visits, per_match = shares["false_positive_share_of_visits"], shares["messages_per_match"]
    if of_visits is not None:
        rows.append(("", f"{100 * of_visits:.1f} %", "of the peers that handled an event"))
    if per_match is not None:
        rows.append(("messages per match", f"{per_match:.2f}", ""))
    return rows


def _describe_rounds(name: str, settled: Settled | None) -> list[ReportRow]:
    if settled is None:
        return []
    legal, still = settled.legal_after, settled.still_after
    rest = "" if still is None else f", {still} until at rest"
    return [(name, "never" if legal is None else str(legal), f"rounds until legal{rest}")]


def _measure(outcome: Outcome) -> dict[str, Any]:
    found, pairs = outcome.score, len(outcome.states) * len(outcome.events)
    return {
        "false_positive_share": _divide(found.false_positives, pairs) or 0.0,
        "false_positive_share_of_visits": _divide(found.false_positives, found.visits),
        "messages_per_match": _divide(outcome.event_messages, found.matches),
    }


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _write_rounds(name: str, settled: Settled | None) -> dict[str, int | None]:
    return {
        f"rounds_to_{name}": None if settled is None else settled.legal_after,
        f"rounds_to_rest_after_{name}": None if settled is None else settled.still_after,
    }


def as_json(outcome: Outcome, seconds: float, files: Mapping[str, str], replay: str) -> str:
    """Write one JSON object on one line; what was not measured is null."""
    found = outcome.score
    return json.dumps(
        {
            "peers": len(outcome.filters),
            "living": len(outcome.states),
            "left": outcome.left,
            "crashed": outcome.crashed,
            "corrupted": outcome.corrupted,
            "height": outcome.height,
            "rounds": outcome.rounds,
            **_write_rounds("build", outcome.built),
            **_write_rounds("heal", outcome.healed),
            "overflown": outcome.overflown,
            "messages_at_rest": outcome.messages_at_rest,
            "events": len(outcome.events),
            "event_messages": outcome.event_messages,
            "matches": found.matches,
            "false_negatives": found.missed,
            "duplicates": found.doubled,
            "unwanted": found.unwanted,
            "false_positives": found.false_positives,
            **_measure(outcome),
            "problems": outcome.problems,
            "replay": replay,
            "seconds": round(seconds, 3),
            **files,
        }
    )
