"""Where in a data folder the tenants are: a folder each, with its own log and nothing shared."""

from collections.abc import Iterator
from pathlib import Path

from contrada.broker.keys import DEFAULT_TENANT, check_tenant
from contrada.errors import InvalidInput, blame

_TENANTS = "tenants"


def tenant_folder(data: Path, tenant: str = DEFAULT_TENANT) -> Path:
    """Return the folder of a tenant, which need not be there."""
    check_tenant(tenant)
    return data / _TENANTS / tenant


def list_tenants(data: Path) -> Iterator[str]:
    """List the tenants that a data folder has, by name."""
    try:
        found = sorted(path.name for path in (data / _TENANTS).iterdir() if path.is_dir())
    except FileNotFoundError:
        return
    except OSError as fault:
        raise blame(fault, f"{data}: cannot be read: {fault.strerror}") from fault
    for name in found:
        try:
            check_tenant(name)
        except InvalidInput:
            continue  # not one of ours
        yield name
