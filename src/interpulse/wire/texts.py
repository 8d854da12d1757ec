"""Texts of commands are UTF-8. Protobuf hands out one that is not as bytes, which nobody behind here expects."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError

__all__ = ["check_texts"]


class _Texts(NamedTuple):
    """Where texts stand in a message: in its own fields, alone or repeated, and in the messages inside of it."""

    single: tuple[str, ...]
    repeated: tuple[str, ...]
    inner: tuple[tuple[str, _Texts], ...]
    inner_repeated: tuple[tuple[str, _Texts], ...]


def _texts_of(descriptor: Descriptor, above: tuple[str, ...] = ()) -> _Texts:
    """``above`` are the types around it: one that holds itself is looked into once."""
    path = (*above, descriptor.full_name)
    texts = [each for each in descriptor.fields if each.type == FieldDescriptor.TYPE_STRING]
    messages = [(each, each.message_type) for each in descriptor.fields if each.message_type is not None]
    found = [(each, _texts_of(kind, path)) for each, kind in messages if kind.full_name not in path]
    inner = [(each, plan) for each, plan in found if any(plan)]
    return _Texts(
        tuple(each.name for each in texts if not each.is_repeated),
        tuple(each.name for each in texts if each.is_repeated),
        tuple((each.name, plan) for each, plan in inner if not each.is_repeated),
        tuple((each.name, plan) for each, plan in inner if each.is_repeated),
    )


_UNREAD: Final = frozenset({pb.BaseCommand.ACK})
"""It comes once per message, and nobody reads its texts."""

_BY_TYPE: Final[dict[int, _Texts]] = {
    field.number: plan
    for field in pb.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None and field.number not in _UNREAD and any(plan := _texts_of(field.message_type))
}


def check_texts(kind: int, content: Any) -> None:
    """Refuse a command of this type whose texts are not all UTF-8; raises RemoteProtocolError."""
    plan = _BY_TYPE.get(kind)
    if plan is not None:
        _check(content, plan)


def _check(message: Any, plan: _Texts) -> None:
    for name in plan.single:
        if type(getattr(message, name)) is bytes:
            raise RemoteProtocolError(f"{name} that is not UTF-8")
    for name in plan.repeated:
        if bytes in map(type, getattr(message, name)):
            raise RemoteProtocolError(f"{name} that is not UTF-8")
    for name, inner in plan.inner:
        if message.HasField(name):
            _check(getattr(message, name), inner)
    for name, inner in plan.inner_repeated:
        for each in getattr(message, name):
            _check(each, inner)
