"""The many types that Arrow has for one thing, and the few that rows have."""

import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """Tell whether values are text."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in tests)


def is_binary(kind: pa.DataType) -> bool:
    """Tell whether values are bytes."""
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(is_kind(kind) for is_kind in tests)


def is_uuid(kind: pa.DataType) -> bool:
    """Tell whether values are UUIDs, which rows have as text."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Give the type as it is stored, under a registered extension type too."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type without views, runs and extensions, inside lists and structs too."""
    if is_uuid(kind):
        return pa.string()
    kind = storage_type(kind)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(plain_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, plain_type(member.type)) for member in kind])
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind
