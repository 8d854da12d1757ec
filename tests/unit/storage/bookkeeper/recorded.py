"""What was recorded from real bookies and real brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("exchanges.json").read_text())
COMPUTED: dict[str, bytes] = {
    name: bytes.fromhex(value) for name, value in RECORDED["computed"].items() if not name.startswith("ledger metadata")
}
EXCHANGES: dict[str, tuple[bytes, bytes]] = {
    each["name"]: (bytes.fromhex(each["request"]), bytes.fromhex(each["reply"])) for each in RECORDED["exchanges"]
}
