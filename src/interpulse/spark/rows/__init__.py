"""Rows of Spark: `columns` defines them, `row_builder` fills them."""
