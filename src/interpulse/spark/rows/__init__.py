"""Rows of Spark: `columns` says which there are, `row_builder` fills them."""
