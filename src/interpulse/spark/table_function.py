"""``read_pulsar(..)``: a batch read as a table function of SQL, with the options of the data source as arguments.

Spark gives a table function one task and no filters; a view reads with many tasks. Analysis turns the topics' schemas
into columns. Evaluation plans the read and returns Arrow batches as they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, UserDefinedTableFunction
from pyspark.util import PythonEvalType

from interpulse.spark.options.option import OptionError, Purpose, options_of
from interpulse.spark.processes.workers import configure_worker, strip_traceback, strip_traceback_while_reading

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from interpulse.spark.reading.read_options import ReadOptions

FUNCTION_NAME: Final = "read_pulsar"
_SERVICE_URL: Final = "service.url"
_SECRETS: Final = ("authtoken", "authparams")
"""Endings of option keys that may hold a secret."""
_OF_MANY_TASKS: Final = (
    *("tasks_max", "min_partitions", "max_bytes_per_partition", "max_entries_per_partition"),
    *("preserve_order", "plan_mode", "planner", "filter_pushdown", "key_routing"),
)
_FROM_ELSEWHERE: Final = ("file:", "env:")

configure_worker()


@dataclass
class _Call(AnalyzeResult):
    """The result of analyzing a call: its columns, and the options in the form of the data source."""

    options: dict[str, str] = field(default_factory=dict)


class ReadPulsar:
    """The handler of the function. Spark analyzes the call on the driver, and evaluates it in one task."""

    def __init__(self, call: AnalyzeResult) -> None:
        assert isinstance(call, _Call)
        self._call = call

    @staticmethod
    @strip_traceback
    def analyze(*arguments: AnalyzeArgument, **named: AnalyzeArgument) -> AnalyzeResult:
        """Return the columns of the call. Raises OptionError and TopicNotFound."""
        from interpulse.spark.reading.read_options import parse_read_options
        from interpulse.spark.reading.reader import schema_of_read

        texts = options_of_arguments(arguments, named)
        _check_one_task(parse_read_options(texts, Purpose.BATCH_READ))
        return _Call(schema_of_read(texts), options=texts)

    @strip_traceback_while_reading
    def eval(self, *arguments: object, **named: object) -> Iterator[pa.RecordBatch]:
        """Yield the rows. The arguments are those of the analysis."""
        from interpulse.spark.reading.reader import batch_reader

        reader = batch_reader(self._call.options, self._call.schema)
        for partition in reader.partitions():
            yield from reader.read(partition)


def options_of_arguments(arguments: tuple[AnalyzeArgument, ...], named: dict[str, AnalyzeArgument]) -> dict[str, str]:
    """Return options from arguments: the service URL first, then any number of maps, and others by option name.

    Raises OptionError for an argument that is no constant, which has no value before the query runs, and for a token in
    plain text, which would be visible in the plan.
    """
    options: dict[str, str] = {}
    if arguments and not isinstance(arguments[0].value, dict):
        named = {_SERVICE_URL: arguments[0], **named}
        arguments = arguments[1:]
    for argument in arguments:
        if not isinstance(argument.value, dict):
            raise OptionError(
                f"{FUNCTION_NAME} takes the service URL, maps of options, and options by name: topic => '..'"
            )
        options |= {str(key): _text(str(key), value) for key, value in argument.value.items()}
    for name, argument in named.items():
        if argument.isTable or not argument.isConstantExpression:
            raise OptionError(f"argument {name} of {FUNCTION_NAME} is not a constant")
        if name.lower() in {key.lower() for key in options}:
            raise OptionError(f"option {name} is given twice")
        options[name] = _text(name, argument.value)
    return options


def _check_one_task(options: ReadOptions) -> None:
    """Refuse options that split a read or concern filters. Raises OptionError."""
    declared = options_of(type(options))
    idle = [declared[key].name for key in _OF_MANY_TASKS if getattr(options, key) != declared[key].default]
    if idle:
        raise OptionError(
            f"{FUNCTION_NAME} reads with one task, and Spark passes it no filters: {', '.join(idle)} "
            f"have no effect. Read through a view: CREATE TEMPORARY VIEW .. USING pulsar OPTIONS (..)"
        )


def _text(name: str, value: Any) -> str:
    if value is None:
        raise OptionError(f"option {name} is NULL: leave it out")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if name.lower().endswith(_SECRETS) and not _is_elsewhere(text):
        raise OptionError(
            f"option {name} of {FUNCTION_NAME} would show its secret in the plan of the query: name a file instead, "
            f"authTokenFile => '/path', or read through a view"
        )
    return text


def _is_elsewhere(text: str) -> bool:
    """Return True if the text names a file or a variable, itself or as the key of OAuth 2."""
    if text.removeprefix("token:").startswith(_FROM_ELSEWHERE):
        return True
    from interpulse.client.credentials import ClientGrant

    try:
        return ClientGrant.parse(text).is_elsewhere
    except ValueError:
        return False


def register_functions(spark: SparkSession) -> None:
    """Register ``read_pulsar`` as a table function of the session. Needs Spark 4.2 or newer.

    ``SELECT * FROM read_pulsar('pulsar://host:6650', topic => 'readings', startingOffsets => 'earliest')``: options of
    the data source by name, those with dots in backquotes or in a map. It reads with one task.
    """
    # The public constructors offer either Arrow batches or columns by call. Without batches, Spark's Python keeps all
    # rows of a call in memory.
    function = UserDefinedTableFunction(
        ReadPulsar, None, name=FUNCTION_NAME, evalType=PythonEvalType.SQL_ARROW_UDTF, deterministic=False
    )
    spark.udtf.register(FUNCTION_NAME, function)
