"""The two files that `contrada match` reads, and the options that name a layer of each."""

import argparse

from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows, read_rows
from contrada.files.reading import find_path, name_layer
from contrada.matcher.column_sources import ColumnSource, open_column_source

_LAYER_OPTIONS = {"events": "layer", "subscriptions": "subscriptions_layer"}


def name_layers(options: argparse.Namespace) -> None:
    """Put the layers that were asked for into the names of the files."""
    for file, option in _LAYER_OPTIONS.items():
        layer = getattr(options, option)
        if layer is None:
            continue
        try:
            setattr(options, file, name_layer(getattr(options, file), layer))
        except InvalidInput as error:
            raise _with_option(error, file).within(f"{_spell(option)} {layer}") from None


def read_file(options: argparse.Namespace, file: str) -> Rows:
    """Open the file of `events` or of `subscriptions`; errors name the option for its layers."""
    try:
        return read_rows(getattr(options, file))
    except InvalidInput as error:
        raise _with_option(error, file) from None


def refuse_missing(options: argparse.Namespace) -> None:
    """Refuse a file of subscriptions that is not there, without opening one that is."""
    if not find_path(options.subscriptions).exists():
        read_file(options, "subscriptions")


def open_columns(options: argparse.Namespace) -> ColumnSource | None:
    """Open the file of subscriptions if it holds columns, not rows."""
    return open_column_source(options.subscriptions)


def _with_option(error: InvalidInput, file: str) -> InvalidInput:
    if Remedy.LAYER not in error.remedies:
        return error
    option = _spell(_LAYER_OPTIONS[file])
    return InvalidInput(f"{error.message}; {option} NAME names a layer of the {file}")


def _spell(option: str) -> str:
    return f"--{option.replace('_', '-')}"
