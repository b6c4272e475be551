"""What the page and the plate of a run have in common: words, and which frames count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.simulation.outcome import FAULTS

if TYPE_CHECKING:
    from contrada.simulation.recording import RoundFrame, Story


def describe(story: Story) -> tuple[str, str]:
    """Name a run in a title and a note below it."""
    plan = story.plan
    has_faults = find_faults_frame(story.frames) is not None
    title = f"{plan.peers:,} peers: {describe_faults(story) if has_faults else 'built'}"
    tree = "the paper's tree" if plan.plain else f"{plan.split} split"
    note = f"{plan.workload} filters, m {plan.min_children}, M {plan.max_children}, {tree}"
    return title, f"{note}, seed {plan.seed}; {_describe_end(story)}"


def _describe_end(story: Story) -> str:
    outcome = story.outcome
    if outcome.problems:
        return f"failed: {outcome.problems[0].rstrip(':')}"
    settled = outcome.healed or outcome.built
    assert settled is not None, "a run without problems has settled"
    verb = "built" if outcome.healed is None else "legal again"
    return f"{verb} after {settled.legal_after} rounds"


def describe_faults(story: Story) -> str:
    """Describe what harms the overlay at the moment of the faults, in few words."""
    fault = find_faults_frame(story.frames)
    if fault is None:
        return ""
    before, after = story.frames[fault - 1], story.frames[fault]
    left, gone = story.outcome.left, len(before.peers) - len(after.peers)
    counts = {"left": left, "crashed": gone - left, "corrupted": story.outcome.corrupted}
    words = [f"{count:,}\N{NO-BREAK SPACE}{name}" for name, count in counts.items() if count]
    return ", ".join(words) or "trouble begins"


def thin(frames: list[RoundFrame]) -> list[RoundFrame]:
    """Drop every other frame; keep both ends, the moment of the faults and the one before it."""
    kept = {0, len(frames) - 1}
    fault = find_faults_frame(frames)
    if fault is not None:
        kept |= {fault - 1, fault}
    return [frame for i, frame in enumerate(frames) if i % 2 == 0 or i in kept]


def find_faults_frame(frames: list[RoundFrame]) -> int | None:
    """Return the place of the frame in which faults happen."""
    return next((i for i, frame in enumerate(frames) if frame.stage == FAULTS), None)


def choose_moments(story: Story) -> list[tuple[str, RoundFrame]]:
    """Choose four frames that tell the run, with a caption for each."""
    frames = story.frames
    fault = find_faults_frame(frames)
    if fault is None:
        return _choose_while_building(frames)
    after = frames[fault]
    rest = frames[fault + 1 :] or [after]
    middle = _find_half_way(rest)
    end = rest[-1]
    state = "not legal" if end.faults else "legal and at rest"
    return [
        ("before", frames[fault - 1]),
        (describe_faults(story), after),
        (f"healing, {_rounds(middle, after)} later", middle),
        (f"{state}, {_rounds(end, after)} later", end),
    ]


def _choose_while_building(frames: list[RoundFrame]) -> list[tuple[str, RoundFrame]]:
    last = len(frames) - 1
    legal = next((i for i, frame in enumerate(frames) if not frame.faults), last)
    captions = {last: "not legal" if frames[last].faults else "at rest"}
    if legal < last:
        captions[legal] = "legal"
    chosen = sorted({legal // 4, legal // 2, legal, last})
    return [
        (f"round {frames[i].round}" + (f", {captions[i]}" if i in captions else ""), frames[i])
        for i in chosen
    ]


def _find_half_way(frames: list[RoundFrame]) -> RoundFrame:
    """Find when the faults are down to half of the most there were."""
    worst = max(range(len(frames)), key=lambda i: frames[i].faults)
    half = frames[worst].faults / 2
    return next((frame for frame in frames[worst:] if frame.faults <= half), frames[-1])


def _rounds(later: RoundFrame, earlier: RoundFrame) -> str:
    count = later.round - earlier.round
    return f"{count} round{'' if count == 1 else 's'}"
