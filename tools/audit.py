"""Known vulnerabilities of what `uv.lock` names: 0 = none is known, 1 = there are some.

    python -m tools.audit

Where the vulnerability service cannot be reached, or knows nothing of these packages, nothing was looked at: that is
said in one line that begins with "not run", and the step does not fail for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SECONDS_MAX = 120


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        pins = Path(scratch, "pins.txt")
        export = ("-q", "--frozen", "--all-extras", "--all-groups", "--no-emit-project", "-o", str(pins))
        subprocess.run([sys.executable, "-m", "uv", "export", *export], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        looked_at = ("--disable-pip", "--require-hashes", "-r", str(pins), "-f", "json", "--progress-spinner", "off")
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pip_audit", *looked_at], capture_output=True, text=True, timeout=SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            print(f"not run: no answer of the vulnerability service within {SECONDS_MAX} s")
            return 0
    lines, code = verdict(done.stdout, done.stderr)
    print(*lines, sep="\n")
    return code


def verdict(report: str, errors: str) -> tuple[list[str], int]:
    """What to say of a report of pip-audit, and whether the step fails.

    ``errors`` is what it said where there is no report.
    """
    try:
        packages: Sequence[Mapping[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        said = errors.strip().splitlines() or ["it said nothing"]
        return [f"not run: pip-audit gave no report: {said[-1][:300]}"], 0
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    found = [
        f"{each['name']} {each['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no version yet'}"
        for each in packages
        for one in each.get("vulns", ())
    ]
    if packages and len(unknown) == len(packages):
        return [f"not run: the vulnerability service knows none of {len(packages)} packages"], 0
    closing = f"{len(packages) - len(unknown)} packages looked at, {len(found)} vulnerabilities"
    if unknown:
        closing += f"; not looked at, because the service does not know them: {', '.join(unknown)}"
    return [*found, closing], int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
