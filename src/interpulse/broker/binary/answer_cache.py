"""Runs of lookups, answered from memory where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeVar

from interpulse.broker.binary.transport.command_connection import CommandConnection
from interpulse.wire.codec import codec
from interpulse.wire.commands import AnswerTemplate
from interpulse.wire.frames import Frame, LookupRun, PartitionsRun

A = TypeVar("A")


def answer_from_cache(
    connection: CommandConnection,
    run: PartitionsRun | LookupRun,
    cached: Callable[[str], A | None],
    template: Callable[[A], AnswerTemplate],
) -> Sequence[Frame]:
    """Answer requests whose topic has a cached answer. Return the others as frames, for their handlers.

    Runs in one step of the event loop, in which no state of the broker changes: one topic has one answer, and no permit
    is taken. Answers nothing while authorization is on, since its filter may wait and comes first.
    """
    session = connection.session
    if not connection.context.permits.left or (session is not None and session.authorization is not None):
        return run.frames()
    encode = codec().encode_answers
    uncached: list[tuple[str, Sequence[int]]] = []
    for answer, same in groupby([(cached(topic[0]), topic) for topic in run.topics], key=itemgetter(0)):
        topics = [topic for _, topic in same]
        if answer is None:
            uncached += topics
        else:
            request_ids = list(chain.from_iterable(map(itemgetter(1), topics)))
            connection.output.send(encode(*template(answer), request_ids))
    return run._replace(topics=uncached).frames() if uncached else ()
