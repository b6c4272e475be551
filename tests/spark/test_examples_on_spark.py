"""Every public name for Spark shows what it does in an example, and the example is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import contrada.spark
from docstring_examples import public_names, run_examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PUBLIC = dict(public_names(contrada.spark))


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_for_spark_is_true(name: str, spark: SparkSession) -> None:
    run_examples(name, PUBLIC[name], {"contrada": contrada, "spark": spark})
