"""What a matcher returns, as people read it: in a notebook, and where Python prints it."""

from typing import Any

from contrada.language import to_text
from contrada.model.subscription import Subscription
from contrada.notebook import abridge, block, code, paragraph, strong, table, text
from contrada.showing import brief, brief_text

_SHORT = 120


class ShownSubscription(Subscription):
    """A subscription as `Matcher.get` returns it: it reads as the CQL2 text of its predicate."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The predicate as CQL2 text, which `Matcher.add` understands."""
        return to_text(self.predicate.expression)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Subscription {brief(self.id)}{self._for()}: {abridge(self.text, _SHORT)}>"

    def _for(self) -> str:
        return "" if self.subscriber is None else f" for {brief(self.subscriber)}"

    def _repr_html_(self) -> str:
        return block(
            paragraph(f"subscription {strong(brief(self.id))}{text(self._for())}"), code(self.text)
        )


class Stats(dict[str, Any]):
    """Figures by name: a dictionary that is a table in a notebook."""

    def _repr_html_(self) -> str:
        figures = (
            (text(name.replace("_", " ")), text(f"{v:,}" if isinstance(v, int) else brief_text(v)))
            for name, v in self.items()
        )
        return block(table(("", ""), figures))
