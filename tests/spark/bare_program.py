"""What tasks do, in a Python that has the package as an archive: SERVICE_URL TOPIC."""

import sys

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_interpulse import DefaultSource

service_url, topic = sys.argv[1:]
columns = StructType([StructField("__key", StringType()), StructField("value", StringType())])
rows = pa.RecordBatch.from_pydict({"__key": ["attic", "cellar"], "value": ["1", "2"]})


def write(**more: str) -> None:
    given = CaseInsensitiveDict({"service.url": service_url, "topic": topic, **more})
    DefaultSource(given).writer(schema=columns, overwrite=False).write(iter([rows]))


write()
write(compressiontype="ZLIB")
source = DefaultSource(CaseInsensitiveDict({"service.url": service_url, "topic": topic}))
reader = source.reader(schema=source.schema())
read = [
    value
    for task in reader.partitions()
    for rows in reader.read(task)
    for value in rows.column("value").to_pylist()  # type: ignore[union-attr]
]
assert sorted(read) == [b"1", b"1", b"2", b"2"], read
write(compressiontype="LZ4")
