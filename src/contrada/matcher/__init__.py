"""The façade: `Matcher`, `relate`, `explain`; what a library call reaches first."""

from contrada.matcher.facade import Matcher, explain, relate

__all__ = ["Matcher", "explain", "relate"]
