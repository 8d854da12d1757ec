"""The faults of copies: missing, extra, duplicated, reordered or different.

Spark's sorts and windows do the work, and spill to disk: neither Java nor Python holds all messages of a key at once.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

SOURCE: Final = 0
TARGET: Final = 1

JUDGED_COLUMNS: Final = (
    *("topic", "key", "side", "identity", "content", "place", "overtaken"),
    *("partition", "ledger", "entry", "batch"),
)
"""The columns that `judge` reads: those of `interpulse.spark.verify.digests.Digest`, and the side."""

_GROUP: Final = ("topic", "key")
_PAIRED, _REPEAT, _ORIGINAL, _COPY = "paired", "repeat", "original", "copy"
"""The result for a row: it has a counterpart, it came once too often, or it is alone on its side."""


class Problem(StrEnum):
    """The faults of a copy."""

    MISSING = "missing"
    EXTRA = "extra"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    DIFFERENT = "different"


def judge(rows: DataFrame) -> DataFrame:
    """Return every problem of every group, which is a topic and a key; none for a group whose copies are the same.

    ``rows`` has the JUDGED_COLUMNS of both sides; the result has problem, topic, key, source_place and target_place. An
    identity must occur on both sides of a group equally often. A copy is reordered if the copy of a later original
    precedes it, in its group or, if it was overtaken, in another one. A left-over original and a left-over copy count
    as one altered copy.
    """
    uneven = _without_same(_met(rows.repartition(*_GROUP)))
    original, copy = f.col("original"), f.col("copy")
    alone = f.col("became").isin(_ORIGINAL, _COPY)
    # Pairs leftover originals and copies in order.
    paired = uneven.groupBy(*_GROUP, f.when(alone, "alone").otherwise(f.col("became")).alias("became"), "turn").agg(
        *(f.first(name, ignorenulls=True).alias(name) for name in ("original", "copy", "is_different", "is_reordered"))
    )
    is_repeat, is_pair = f.col("became") == _REPEAT, original.isNotNull() & copy.isNotNull()
    problems = f.array(
        f.when(original.isNull() & ~is_repeat, Problem.EXTRA),
        f.when(copy.isNull(), Problem.MISSING),
        f.when(is_repeat, Problem.DUPLICATED),
        f.when(is_pair & (f.col("is_different") | (f.col("became") != _PAIRED)), Problem.DIFFERENT),
        f.when(f.col("is_reordered"), Problem.REORDERED),
    )
    places = original["place"].alias("source_place"), copy["place"].alias("target_place")
    return paired.select(f.explode(f.array_compact(problems)).alias("problem"), *_GROUP, *places)


def _met(rows: DataFrame) -> DataFrame:
    """Pair the first original of an identity with its first copy, the second ones, and so on; a missing one is null.

    ``originals`` is the number of originals of the identity, if the original is null.
    """
    is_original = f.col("side") == SOURCE
    at = f.struct("partition", "ledger", "entry", "batch").alias("at")
    item = f.struct(at, "place", "content", "overtaken")
    in_order = Window.partitionBy(*_GROUP, "identity").orderBy("side", "partition", "ledger", "entry", "batch")
    originals = f.sum(is_original.cast("bigint")).over(in_order.rowsBetween(Window.unboundedPreceding, 0))
    counted = rows.select(
        *(*_GROUP, "identity", "side", item.alias("item")),
        originals.alias("originals"),
        f.row_number().over(in_order).alias("number"),
    )
    of_side = f.when(is_original, f.col("number")).otherwise(f.col("number") - f.col("originals"))
    return counted.groupBy(*_GROUP, "identity", of_side.alias("nth")).agg(
        f.first(f.when(is_original, f.col("item")), ignorenulls=True).alias("original"),
        f.first(f.when(~is_original, f.col("item")), ignorenulls=True).alias("copy"),
        f.max("originals").alias("originals"),
    )


def _without_same(met: DataFrame) -> DataFrame:
    """Leave out faultless pairs. ``turn`` numbers the rows of a group with the same result."""
    original, copy = f.col("original"), f.col("copy")
    became = (
        f.when(original.isNotNull() & copy.isNotNull(), _PAIRED)
        .when(original.isNotNull(), _ORIGINAL)
        .when(f.col("originals") > 0, _REPEAT)
        .otherwise(_COPY)
    )
    in_order = Window.partitionBy(*_GROUP, "became").orderBy(f.coalesce(copy["at"], original["at"]))
    highest = f.max(original["at"]).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    ordered = met.withColumn("became", became).select(
        *(*_GROUP, "original", "copy", "became"),
        f.row_number().over(in_order).alias("turn"),
        highest.alias("highest"),
    )
    is_pair = f.col("became") == _PAIRED
    is_late = f.coalesce(original["at"] < f.col("highest"), f.expr("false"))
    is_different = is_pair & (original["content"] != copy["content"])
    judged = ordered.withColumns(
        {"is_different": is_different, "is_reordered": is_pair & (copy["overtaken"] | is_late)}
    )
    return judged.where(~is_pair | f.col("is_different") | f.col("is_reordered"))
