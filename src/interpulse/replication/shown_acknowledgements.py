"""Acknowledgements of a subscription as the admin APIs of both kinds of brokers show them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements, Span, after, before
from interpulse.wire.ids import mask_of

_RANGE: Final = re.compile(r"([\[(])(-?\d+):(-?\d+)\.\.(-?\d+):(-?\d+)([\])])")


def reported_acknowledgements(item: Mapping[str, Any]) -> Acknowledgements:
    """Return the acknowledgements of a subscription in an answer of a broker of ours."""
    beyond = tuple(Span(Position(ledger, first), Position(ledger, last)) for ledger, first, last in item["ranges"])
    masks = {Position(ledger, entry): mask_of(words) for ledger, entry, words in item["masks"]}
    return Acknowledgements(Position.parse(item["markDelete"]), beyond, masks)


def acknowledgements_in_stats(cursor: Mapping[str, Any]) -> Acknowledgements:
    """Return the acknowledgements of a cursor in the internal stats of a topic, without parts of batches."""
    ranges = parse_ranges(cursor.get("individuallyDeletedMessages", ""))
    return Acknowledgements(Position.parse(str(cursor["markDeletePosition"])), tuple(ranges))


def parse_ranges(text: str) -> Sequence[Span]:
    """Return the ranges that Apache Pulsar shows, as in ``[(3:9..3:14],[5:0..5:2]]``."""
    spans = []
    for opening, ledger, entry, last_ledger, last_entry, closing in _RANGE.findall(text):
        first, last = Position(int(ledger), int(entry)), Position(int(last_ledger), int(last_entry))
        spans.append(Span(after(first) if opening == "(" else first, before(last) if closing == ")" else last))
    return spans
