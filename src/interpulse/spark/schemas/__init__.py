"""Schemas of topics as columns of Spark: which columns they make, and payloads between bytes and values.

`avro_columns` and `primitives` know one kind of schema each; `payload_columns` says which columns a topic's schema
makes, `payload_decoder` fills them and `payload_encoder` makes payloads of rows. No IO: schemas are values.
"""
