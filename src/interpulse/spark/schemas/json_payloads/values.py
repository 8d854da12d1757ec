"""Single values of JSON payloads, read as Java's client reads them: by Jackson, with the settings of its JSON schema.

Where Jackson would lose a part of a value, such as the fraction of 7.9 in an INT, the value is refused. Null, and text
that is empty where a number or a time belongs, is null.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_FLOOR, Context, Decimal, DecimalException, Inexact, InvalidOperation
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from interpulse.spark.schemas.json_payloads.definition import JAVA_MILLIS, JAVA_SECONDS

ReadValue: TypeAlias = Callable[[Any], Any]
"""Makes what Arrow takes of a value of JSON that is not null. Raises JsonMisfit."""


class Fraction(str):
    """A number with a fraction or an exponent, in its original notation."""

    __slots__ = ()


class JsonMisfit(ValueError):
    """A value that its field does not take. The message names the column, the value and the rule."""

    def __init__(self, value: Any, kind: str, rule: str) -> None:
        super().__init__(value, kind, rule)
        self._reason = f"{_shown(value)} does not fit {kind}: {rule}"
        self._path = ""

    def inside(self, step: str) -> JsonMisfit:
        """Prepend the field, element or entry that contains the value to its path."""
        between = "." if self._path and not self._path.startswith("[") else ""
        self._path = f"{step}{between}{self._path}"
        return self

    def __str__(self) -> str:
        return f"column {self._path}: {self._reason}" if self._path else self._reason


def _shown(value: Any) -> str:
    text = f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
    if not isinstance(value, bytes | Fraction | Decimal):
        text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}..."


_KIND_NAMES: Final = {
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "record": "STRUCT",
    "error": "STRUCT",
    "timestamp": "TIMESTAMP",
    "local-timestamp": "TIMESTAMP_NTZ",
    "date": "DATE",
}


def kind_name(schema: Mapping[str, Any]) -> str:
    """Return the name of a resolved type for errors: Spark's word, or Avro's where that says more."""
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"DECIMAL({schema['precision']},{schema.get('scale', 0)})"
    if schema["type"] == "fixed":
        return f"fixed({schema['size']})"
    kind = logical.removesuffix("-millis").removesuffix("-micros") if logical else schema["type"]
    return str(_KIND_NAMES.get(kind, kind.upper()))


def value_reader(schema: Mapping[str, Any]) -> ReadValue:
    """Return a reader of values of a resolved type other than unions, arrays, maps and records."""
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return _decimal_reader(schema["precision"], schema.get("scale", 0), kind_name(schema))
    if logical is not None:
        return _read_date if logical == "date" else _moment_reader(logical, schema.get("java-class"))
    if kind == "enum":
        return _symbol_reader(schema["symbols"])
    if kind == "fixed":
        return partial(_read_bytes, kind_name(schema), schema["size"])
    if "dayTicks" in schema:
        return partial(_read_time_of_day, schema["dayTicks"])
    if schema.get("java-class") == "java.lang.Character":
        return _read_character
    return _READERS[kind]


# ---- Numbers


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_REAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PLACES: Final = re.compile(r"[+-]?[0-9]+\.[0-9]+")
_NO_NUMBER: Final = frozenset({"", "null"})
_WORDS: Final[Mapping[str, float | None]] = {
    **dict.fromkeys(_NO_NUMBER),
    "NaN": math.nan,
    **dict.fromkeys(("Infinity", "+Infinity", "INF", "+INF"), math.inf),
    **dict.fromkeys(("-Infinity", "-INF"), -math.inf),
}
_FLOORED: Final = Context(prec=60, rounding=ROUND_FLOOR)
_ADJUSTED_MAX: Final = 30
"""Largest exponent that is converted to an integer, far above that of every integer and time."""


def _decimal(text: str) -> Decimal | None:
    """Return the number, rounded down to 60 digits. Return None for other text and numbers above all limits."""
    try:
        number = _FLOORED.create_decimal(text)
    except DecimalException:
        return None
    return number if number.is_finite() and number.adjusted() <= _ADJUSTED_MAX else None


def _whole_number(value: Any) -> int | None:
    if type(value) is int:
        return value
    if type(value) is str:
        return int(text) if _WHOLE.fullmatch(text := value.strip()) else None
    number = _decimal(value) if type(value) is Fraction else None
    return None if number is None or number != number.to_integral_value() else int(number)


def _integer_reader(kind: str, bits: int) -> ReadValue:
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> int | None:
        number = value if type(value) is int else _whole_number(value)
        if number is not None and lowest <= number <= highest:
            return number
        if type(value) is str and value.strip() in _NO_NUMBER:
            return None
        raise JsonMisfit(value, kind, f"it takes whole numbers from {lowest} to {highest}")

    return read


def _read_real(kind: str, value: Any) -> float | None:
    if type(value) in (Fraction, float):
        return float(value)  # NaN and Infinity arrive as float: Python's clients write them bare
    if type(value) is int:
        with suppress(OverflowError):
            return float(value)
        return math.inf if value > 0 else -math.inf
    if type(value) is str:
        text = value.strip()
        if text in _WORDS:
            return _WORDS[text]
        if _REAL.fullmatch(text):
            return float(text)
    raise JsonMisfit(value, kind, 'it takes numbers, "NaN", "Infinity" and "-Infinity"')


def _decimal_reader(precision: int, scale: int, kind: str) -> ReadValue:
    exact = Context(prec=precision, traps=[InvalidOperation, Inexact])
    places = Decimal(1).scaleb(-scale)

    def read(value: Any) -> Decimal | None:
        text = value.strip() if type(value) is str else value
        if type(value) is str and text in _NO_NUMBER:
            return None
        if type(value) in (int, Fraction) or (type(value) is str and _REAL.fullmatch(text)):
            with suppress(DecimalException):
                return exact.quantize(Decimal(text), places)
        raise JsonMisfit(value, kind, "it takes numbers that it holds without rounding")

    return read


# ---- Truth, text and bytes


_TRUTH: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(_NO_NUMBER, None),
}


def _read_boolean(value: Any) -> bool | None:
    if type(value) is bool:
        return value
    if type(value) is int:
        return value != 0
    if type(value) is str and (text := value.strip()) in _TRUTH:
        return _TRUTH[text]
    raise JsonMisfit(value, "BOOLEAN", "it takes true, false, whole numbers, and these words as text")


def _read_text(value: Any) -> str:
    if type(value) is str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise JsonMisfit(ascii(value), "STRING", "half of a surrogate pair is no character") from None
        return value
    if type(value) in (int, Fraction):
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    raise JsonMisfit(value, "STRING", "it takes text, numbers, true and false")


def _symbol_reader(symbols: Sequence[str]) -> ReadValue:
    names = frozenset(symbols)

    def read(value: Any) -> str:
        if type(value) is str and (text := value.strip()) in names:
            return text
        index = _whole_number(value) if type(value) in (int, str) else None
        if index is not None and 0 <= index < len(symbols):
            return symbols[index]
        raise JsonMisfit(value, "ENUM", f"its symbols are {', '.join(symbols)}")

    return read


def _read_character(value: Any) -> int | None:
    """Read a Java ``char``: an ``int`` in Avro, text in JSON."""
    if type(value) is str and len(value) == 1:
        return ord(value)
    number: int | None = _READERS["int"](value)
    return number


def _read_bytes(kind: str, size: int | None, value: Any) -> bytes:
    raw = None
    if type(value) is str:
        with suppress(ValueError):
            raw = base64.b64decode(value.strip(), validate=True)
    elif type(value) is list and all(type(item) is int and -128 <= item <= 255 for item in value):
        raw = bytes(item & 0xFF for item in value)
    if raw is None:
        raise JsonMisfit(value, kind, "it takes base64 with padding, or an array of bytes")
    if size is not None and len(raw) != size:
        raise JsonMisfit(value, kind, f"it takes {size} bytes, not {len(raw)}")
    return raw


# ---- Times


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_LOCAL: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAYS: Final = range(-719_162, 2_932_897)
_MICROS: Final = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
_DAY_TEXT: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_TEXT: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ISO_INSTANT: Final = re.compile(rf"{_DAY_TEXT}[T ]{_TIME_TEXT}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})")
_ISO_LOCAL: Final = re.compile(rf"({_DAY_TEXT}T{_TIME_TEXT})Z?")
_ISO_DATE: Final = re.compile(rf"({_DAY_TEXT})(?:T{_TIME_TEXT}Z?)?")
_ISO_TIME: Final = re.compile(_TIME_TEXT)
_YEARS: Final = "from the year 1 to 9999"


def _moment_reader(logical: str, java_class: str | None) -> ReadValue:
    if java_class in JAVA_SECONDS:
        return partial(_read_instant, _Ticks(1_000_000, "seconds"))
    ticks = _Ticks(1000, "milliseconds") if logical.endswith("millis") else _Ticks(1, "microseconds")
    ticks = ticks._replace(are_beside_seconds=java_class not in JAVA_MILLIS)
    return partial(_read_local if logical.startswith("local") else _read_instant, ticks)


class _Ticks(NamedTuple):
    """Unit of integers for a time.

    With ``are_beside_seconds``, numbers with a fraction are seconds, as Jackson writes an ``Instant``, and not refused.
    """

    micros: int
    name: str
    are_beside_seconds: bool = True


def _read_instant(ticks: _Ticks, value: Any) -> datetime | None:
    text = value.strip() if type(value) is str else value
    if text == "":
        return None
    micros: int | None = None
    if type(value) is int:
        micros = value * ticks.micros
    elif type(value) is str:
        micros = _spelled_instant(text, ticks)
    elif type(value) is Fraction and ticks.are_beside_seconds:
        micros = _micros_of_seconds(value)
    if micros is None or micros not in _MICROS:
        numbers = f"{ticks.name} as a whole number{', seconds with a fraction' if ticks.are_beside_seconds else ''}"
        raise JsonMisfit(value, "TIMESTAMP", f"it takes {numbers}, and ISO 8601 with an offset, {_YEARS}")
    return _EPOCH + micros * _MICROSECOND


def _spelled_instant(text: str, ticks: _Ticks) -> int | None:
    if _WHOLE.fullmatch(text):
        return int(text) * ticks.micros
    if _PLACES.fullmatch(text):
        return _micros_of_seconds(text) if ticks.are_beside_seconds else None
    with suppress(ValueError):
        if _ISO_INSTANT.fullmatch(text):
            return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    return None


def _micros_of_seconds(text: str) -> int | None:
    seconds = _decimal(text)
    return None if seconds is None else int(_FLOORED.scaleb(seconds, 9)) // 1000


def _read_local(ticks: _Ticks, value: Any) -> datetime | None:
    if value in ("", []):
        return None
    moment: datetime | None = None
    with suppress(ValueError, OverflowError):
        if type(value) is int and value * ticks.micros in _MICROS:
            moment = _EPOCH_LOCAL + value * ticks.micros * _MICROSECOND
        elif type(value) is list and 5 <= len(value) <= 7 and _are_whole(value):
            moment = datetime(*value[:6], *_micros_of_nanos(value[6:]))
        elif type(value) is str and (spelled := _ISO_LOCAL.fullmatch(value.strip())):
            moment = datetime.fromisoformat(spelled[1])
    if moment is None:
        rule = f"it takes [year, month, day, hour, minute, second, nanosecond], {ticks.name} and ISO 8601"
        raise JsonMisfit(value, "TIMESTAMP_NTZ", f"{rule} without an offset, {_YEARS}")
    return moment


def _read_date(value: Any) -> date | None:
    if value in ("", []):
        return None
    with suppress(ValueError, OverflowError):
        if type(value) is int and value in _DAYS:
            return _EPOCH_DAY + timedelta(days=value)
        if type(value) is list and len(value) == 3 and _are_whole(value):
            return date(*value)
        if type(value) is str and (spelled := _ISO_DATE.fullmatch(value.strip())):
            return date.fromisoformat(spelled[1])
    raise JsonMisfit(value, "DATE", f"it takes [year, month, day], days since 1970 and ISO 8601, {_YEARS}")


def _read_time_of_day(ticks: int, value: Any) -> int | None:
    if value in ("", []):
        return None
    with suppress(ValueError, OverflowError):
        if type(value) is int and 0 <= value < 86_400 * ticks:
            return value
        if type(value) is list and 2 <= len(value) <= 4 and _are_whole(value):
            return _ticks_of_day(time(*value[:3], *_micros_of_nanos(value[3:])), ticks)
        if type(value) is str and _ISO_TIME.fullmatch(value.strip()):
            return _ticks_of_day(time.fromisoformat(value.strip()), ticks)
    raise JsonMisfit(value, "TIME", "it takes [hour, minute, second, nanosecond], ticks of a day, and ISO 8601")


def _ticks_of_day(moment: time, ticks: int) -> int:
    micros = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond
    return micros * ticks // 1_000_000


def _are_whole(items: Sequence[Any]) -> bool:
    return all(type(item) is int for item in items)


def _micros_of_nanos(nanos: Sequence[int]) -> list[int]:
    return [nano // 1000 for nano in nanos]


_READERS: Final[Mapping[str, ReadValue]] = {
    "null": lambda value: None,
    "boolean": _read_boolean,
    "int": _integer_reader("INT", 32),
    "long": _integer_reader("BIGINT", 64),
    "float": partial(_read_real, "FLOAT"),
    "double": partial(_read_real, "DOUBLE"),
    "string": _read_text,
    "bytes": partial(_read_bytes, "BINARY", None),
}
