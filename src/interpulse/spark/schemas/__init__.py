"""Columns of Spark for the schemas of topics, and their payloads as values.

`avro_columns` and `primitives` each know one kind of schema. `payload_columns` selects the columns of a topic's schema,
`payload_decoder` fills them, and `payload_encoder` turns rows into payloads. No IO: schemas are values.
"""
