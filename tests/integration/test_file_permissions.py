"""What a broker keeps is its owner's alone."""

import os
from pathlib import Path

from interpulse.sync import Client
from interpulse.testing.broker import InProcessBroker


def test_files_when_a_broker_makes_them_then_only_its_owner_may_read_them(tmp_path: Path) -> None:
    """Even where the user's mask would let others in."""
    data = tmp_path / "data"
    before = os.umask(0)
    try:
        with (
            InProcessBroker(data) as broker,
            Client(broker.service_url) as client,
            client.subscribe("t", "s") as consumer,
            client.create_producer("t") as producer,
        ):
            producer.send("secret")
            consumer.acknowledge(consumer.receive(60_000))
    finally:
        os.umask(before)
    made = [data, *data.rglob("*")]
    assert {"metadata.sqlite", "lock"} <= {path.name for path in made}
    open_to_others = [path for path in made if path.stat().st_mode & 0o077]
    assert open_to_others == []
