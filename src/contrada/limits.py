"""What a stranger may send at the most: every limit once, and no other module states one.

Each is shown in the table of `docs/limits.md`, which a test compares with this page. What costs
more than its size allows is refused with the limit by name. The overlay has limits of its own,
which follow from its protocol.
"""

# Predicates
PREDICATE_DEPTH_MAX = 100  # levels of a tree: evaluation recurses, too
PREDICATE_NESTING_MAX = 3 * PREDICATE_DEPTH_MAX  # a level may be a parenthesis and two signs
PREDICATE_JOINS_MAX = 4_096  # ANDs and ORs of one text
FILTERS_MAX = 1_024  # of one predicate in normal form
NAME_LENGTH_MAX = 1_000  # characters of an attribute's name: each of its dots may begin a path

# Events
COLUMN_DEPTH_MAX = 64  # levels of the type of a column: its values are read level by level
