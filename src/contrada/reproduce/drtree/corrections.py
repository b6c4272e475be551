"""Where the paper is wrong or silent, in short, as the building of it has shown."""

from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.reporting import say_prose, say_title

WRONG = """
Adjust_Parent (Figure 7) changes the children of the node that steps down. The one that takes over
must get them, with the parent link and every higher level, and the grandparent must know.

Best_Set_Cover (Figure 14) takes a greatest y for x. `underloaded` (Figure 12) turns false only
above m children, where m are enough.

Levels count from the root, so that a split of the root renumbers the whole tree. Ours count from
the leaves.

Adjust_Children sets a parent at the wrong level. Merge_Children clears the wrong node and leaves
it among the children. Two loops of Figure 14 remove nothing and never end. Figure 11 lacks “sets
itself as parent”, Figure 8 the way to the root.

Property 3.1 is not guaranteed by electing the largest box: it follows for leaves only. A legal
tree of four peers violates it (tests/reproduce/test_drtree.py).

Property 3.2 is violated more than “occasionally”: see the shares above.

Lemma 3.7 is no time until the tree is cut, which a single departure may do: at Δλ = N / 2 it grows
like e to the N / 8. It can be measured only where Δλ is near N.

Reorganisation by false positives is undone by CHECK_COVER: it must replace it.
"""

SILENT = """
Definition 3.1 asks neither for one root nor for every living peer in the tree, levels without
gaps, leaves that are their filters, a peer among its own children, or two children of a root. The
checker does. Nobody removes the top of a root with one child.

Every leaf of a broken subtree is inserted again, in O(N log N) steps. Ours moves whole subtrees,
and deputies have copies of what their leaders know.

Two trees never find each other: after a cut of the network there would be two for ever. Ours join
when a root hears of another.

A filter without bounds makes every box above it the universe. Ours hang outside the boxes.

Events are points. Ours are boxes; an attribute that an event lacks meets only filters without it.

The area of a flat or an unbounded box. Ours are measured within the universe, and ties go by
margin, then id, or two peers would change places for ever.

Garbage may also be under way in messages, timers and half-done operations.

Of what the false positives are “2 – 3 %”, and with which N, m, M and workload.

What becomes of events while the overlay heals.
"""


def list_corrections(run: DrtreeRun) -> None:
    """Print all, numbered."""
    number = 0
    for title, texts in (("Where the paper is wrong", WRONG), ("Where it is silent", SILENT)):
        say_title(run.reporter, title)
        for text in texts.strip().split("\n\n"):
            number += 1
            say_prose(run.reporter, f"{number:>2}. {text}", indent="    ")
