"""The options of a match on Spark are stated once: the library and the command have the same."""

import argparse
from dataclasses import fields
from inspect import Parameter, signature

import contrada.spark
from contrada.cli.match_options import NEED_SPARK, SPARK_CHOICES, add_match_parser
from contrada.spark_options import CHOICES, SparkOptions


def test_match_takes_them_with_their_defaults() -> None:
    parameters = signature(contrada.spark.match).parameters.values()
    taken = {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    assert taken == {field.name: field.default for field in fields(SparkOptions)}


def test_the_command_offers_the_same_choices() -> None:
    parser = add_match_parser(argparse.ArgumentParser().add_subparsers(), "")
    offered = {action.dest: action.choices for action in parser._actions if action.choices}
    assert offered == {name: CHOICES[name] for name in SPARK_CHOICES}
    words = {action.dest: action.help or "" for action in parser._actions}
    for name in SPARK_CHOICES:
        assert words[name].endswith(f"(default: {CHOICES[name][0]})")


def test_all_options_of_the_group_for_spark_need_spark() -> None:
    parser = add_match_parser(argparse.ArgumentParser().add_subparsers(), "")
    (group,) = [g for g in parser._action_groups if g.title == "with --spark"]
    assert parser.get_default(NEED_SPARK) == tuple(a.dest for a in group._group_actions)
