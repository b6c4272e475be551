"""The many types that Arrow has for one thing, and the few that rows have."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.old_intervals import is_old_interval
from contrada.matching.arrow_values import struct_members
from contrada.showing import brief


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in tests)


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(is_kind(kind) for is_kind in tests)


def is_uuid(kind: pa.DataType) -> bool:
    """Whether values are UUIDs, which rows have as text."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"


def is_bool8(kind: pa.DataType) -> bool:
    """Whether values are truth values in a byte each, which rows have as booleans."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.bool8"


def check_names(schema: pa.Schema, name: str) -> None:
    """Refuse columns that Python cannot name, or not even look at; inside structs, too."""
    for index in range(len(schema)):
        try:
            field = schema.field(index)
            column = field.name
        except UnicodeDecodeError as fault:
            raise InvalidInput(
                f"{name}: column {index} has a name that is not UTF-8: {brief(fault.object)}"
            ) from fault
        with _naming_parts(column, name):
            str(plain_type(field.type))


def check_member_names(field: pa.Field, name: str) -> None:
    """Refuse a column of lists of a fixed size whose members have a name that is not UTF-8."""
    kind = storage_type(field.type)
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_fixed_size_list(kind):
        with _naming_parts(field.name, name):
            str(kind.value_field.name)


@contextmanager
def _naming_parts(column: str, name: str) -> Iterator[None]:
    """Blame a column for a part whose name Python cannot read, or for too many levels."""
    try:
        yield
    except UnicodeDecodeError as fault:
        raise InvalidInput(
            f'{name}: column "{column}" has a part whose name is not UTF-8: {brief(fault.object)}'
        ) from fault
    except RecursionError as fault:
        raise InvalidInput(f'{name}: column "{column}" is nested too deeply') from fault


def validate(array: pa.Array) -> None:
    """Refuse what is not in Arrow's format, except under a null, where nobody sees it."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        if not pa.types.is_struct(array.type):
            raise
        array.validate()  # whether its parts fit together at all
        for member in struct_members(array):
            validate(member)


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as it is stored, under a registered extension type too."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without views, fixed sizes of bytes, runs and extensions.

    So it is inside lists, structs, maps, unions and dictionaries, too.
    """
    if is_uuid(kind):
        return pa.string()
    if is_bool8(kind):
        return pa.bool_()
    if is_old_interval(kind):
        return pa.month_day_nano_interval()
    kind = storage_type(kind)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, plain_type(member.type)) for member in kind])
    if pa.types.is_union(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        plain = [pa.field(member.name, plain_type(member.type)) for member in members]
        return pa.union(plain, kind.mode, kind.type_codes)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without dictionaries, inside lists and structs too."""
    if pa.types.is_dictionary(kind):
        return decoded_type(kind.value_type)
    if pa.types.is_list(kind):
        return pa.list_(decoded_type(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(decoded_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(decoded_type(kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(decoded_type(member.type)) for member in kind])
    return kind
