"""Write the software bill of materials of a wheel: what it installs with all extras, as CycloneDX JSON.

    python -m tools.sbom [FILE]

The same commit gives the same bytes: the time is that of SOURCE_DATE_EPOCH, or of the commit, and the serial number
follows from the content.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from interpulse import __version__

ROOT = Path(__file__).parent.parent
FORMAT = "cyclonedx1.5"


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / f"interpulse-{__version__}.cdx.json"
    export = ("-q", "--frozen", "--no-dev", "--all-extras", "--format", FORMAT)
    done = subprocess.run(
        [sys.executable, "-m", "uv", "export", *export], cwd=ROOT, check=True, capture_output=True, text=True
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(json.loads(done.stdout), source_time()), indent=2) + "\n")
    print(target)
    return 0


def bill(exported: dict[str, Any], seconds: int) -> dict[str, Any]:
    """What uv exported, as the bill of this version; ``seconds`` since 1970 are its time."""
    exported = {key: value for key, value in exported.items() if key != "serialNumber"}
    component = {
        **exported["metadata"]["component"],
        "version": __version__,
        "purl": f"pkg:pypi/interpulse@{__version__}",
    }
    component.pop("properties", None)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat().replace("+00:00", "Z")
    exported["metadata"] = {**exported["metadata"], "timestamp": moment, "component": component}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(exported, sort_keys=True))
    return {"bomFormat": exported.pop("bomFormat"), "serialNumber": f"urn:uuid:{serial}", **exported}


def source_time() -> int:
    """SOURCE_DATE_EPOCH, or the time of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    line = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    sys.exit(main())
