"""The waits of an honest client while many hostile ones are connected.

    python -m benchmarks.floods [CLIENTS]

prints a table. The floods are those of the tests.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.scenarios.floods import CLIENTS, FLOODS, FloodedBroker


def main() -> None:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else CLIENTS
    with tempfile.TemporaryDirectory() as folder:
        broker = FloodedBroker(Path(folder))
        try:
            print("| hostile clients | median ms | p99 ms | connections afterwards | memory MiB |")
            print("| --- | ---: | ---: | ---: | ---: |")
            for flood in (None, *FLOODS, None):
                waits = broker.waits() if flood is None else broker.suffer(flood, clients)
                name = "none" if flood is None else f"{clients}: {flood.name}"
                row = (name, f"{waits.median:.1f}", f"{waits.p99:.1f}", broker.connections, broker.memory // 2**20)
                print("|", " | ".join(map(str, row)), "|", flush=True)
        finally:
            broker.close()


if __name__ == "__main__":
    main()
