"""Every public function for Spark shows what it does in an example, and the example is true."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

import contrada.spark
from docstring_examples import run_examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FUNCTIONS = [n for n in contrada.spark.__all__ if inspect.isfunction(getattr(contrada.spark, n))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_for_spark_is_true(name: str, spark: SparkSession) -> None:
    run_examples(name, getattr(contrada.spark, name), {"contrada": contrada, "spark": spark})
