"""The check that strings of commands are UTF-8. Protobuf returns other strings as bytes, which no handler expects."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError


def _holds_texts(descriptor: Descriptor, above: tuple[str, ...] = ()) -> bool:
    """Return True if the message, or one inside it, has texts. ``above`` are the types around it."""
    path = (*above, descriptor.full_name)
    inner = [field.message_type for field in descriptor.fields if field.message_type is not None]
    return any(field.type == FieldDescriptor.TYPE_STRING for field in descriptor.fields) or any(
        _holds_texts(kind, path) for kind in inner if kind.full_name not in path
    )


_UNREAD: Final = frozenset({pb.BaseCommand.ACK})
"""A command that is sent once per message, and whose strings are not read."""

_WITH_TEXTS: Final[frozenset[int]] = frozenset(
    field.number
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and field.number not in _UNREAD and _holds_texts(field.message_type)
)
_NO_TEXTS: Final = frozenset({str, int, bool})
"""The values of most fields: strings in UTF-8, or none at all."""


def check_texts(kind: int, content: Any) -> None:
    """Raise RemoteProtocolError if a text of this command is not UTF-8."""
    if kind in _WITH_TEXTS:
        _check(content)


def _check(message: Any) -> None:
    """Check the fields that are set, which are few of the possible ones."""
    for field, value in message.ListFields():
        if type(value) in _NO_TEXTS:
            continue
        if field.type == FieldDescriptor.TYPE_STRING:
            if type(value) is bytes or bytes in map(type, value):
                raise RemoteProtocolError(f"{field.name} that is not UTF-8")
        elif field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                _check(inner)
