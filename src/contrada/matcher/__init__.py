"""The façade: `Matcher`, `relate`, `explain`; what a library call reaches first."""

from contrada.matcher.facade import ENGINES, Matcher, explain, relate

__all__ = ["ENGINES", "Matcher", "explain", "relate"]
