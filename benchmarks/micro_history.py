"""What judging the history of a failover costs, in seconds of processor time for each property.

    python -m benchmarks.micro_history [--messages 200000]

Each message has five events: it is published, delivered and acknowledged on one site, and copied to the other one.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

from interpulse.failover.history.events import Acknowledge, Deliver, Event, MessageName, Outcome, Publish
from interpulse.failover.history.judging import PROPERTIES
from interpulse.failover.history.record import CursorState, History, Log, LoggedMessage
from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements

TOPICS = 4
PRODUCERS = 8
OUTCOMES = (Outcome.INVOKED, Outcome.OK)


def clean_history(messages: int) -> History:
    """Return a history without violations."""
    events: list[Event] = []
    logs: dict[tuple[str, str], list[LoggedMessage]] = defaultdict(list)
    for number in range(messages):
        topic = f"persistent://public/default/orders-partition-{number % TOPICS}"
        name = MessageName(topic, f"p{number % PRODUCERS}", number // PRODUCERS)
        events.extend(Publish(number, "east", name, outcome) for outcome in OUTCOMES)
        events.append(Deliver(number, "east", name, "s", "c"))
        events.extend(Acknowledge(number, "east", name, "s", "c", outcome) for outcome in OUTCOMES)
        entry = len(logs["east", topic])
        logs["east", topic].append(LoggedMessage(Position(3, entry), 0, name))
        logs["west", topic].append(LoggedMessage(Position(8, entry), 0, name, Position(3, entry)))
    cursors = [CursorState(*key, "s", Acknowledgements(Position(8, messages))) for key in logs]
    return History(("east", "west"), events, [Log(*key, stored) for key, stored in logs.items()], cursors)


def measure(messages: int) -> None:
    history = clean_history(messages)
    total = 0.0
    for name, violations in PROPERTIES.items():
        begun = time.process_time()
        assert not list(violations(history)), name
        spent = time.process_time() - begun
        total += spent
        print(f"{name:>10}: {spent:6.2f} s")
    print(f"{len(history.events):>10} events: {total:.2f} s, {total / len(history.events) * 1e6:.1f} us per event")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    measure(parser.parse_args().messages)


if __name__ == "__main__":
    main()
