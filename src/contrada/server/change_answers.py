"""What is answered to a change of what is wanted, or of who wants it."""

from typing import Any

from contrada.broker.commit_tasks import Changed


def describe_change(changed: Changed) -> dict[str, Any]:
    """Return where a change is in the log, whether it was one, and what else there is to know."""
    return {"position": changed.position, "changed": changed.is_changed, **changed.details}
