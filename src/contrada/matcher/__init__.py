"""The façade: `Matcher`, `relate`, `explain`; what a library call reaches first."""

from contrada.matcher.explanations import explain
from contrada.matcher.facade import Matcher
from contrada.matcher.relating import relate

__all__ = ["Matcher", "explain", "relate"]
