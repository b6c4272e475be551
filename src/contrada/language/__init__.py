"""The predicate language: CQL2 text and JSON, three-valued evaluation, normal form.

`cql2` parses; the meaning is ours. This room knows expressions and events, and nothing of how
many of them there are or of any index.
"""

from contrada.language.evaluate import evaluate, is_satisfied, truth
from contrada.language.normal_form import is_constraint, make_predicate
from contrada.language.read import read, read_json, read_text
from contrada.language.write import constraint_text, to_json, to_text

__all__ = [
    "constraint_text",
    "evaluate",
    "is_constraint",
    "is_satisfied",
    "make_predicate",
    "read",
    "read_json",
    "read_text",
    "to_json",
    "to_text",
    "truth",
]
