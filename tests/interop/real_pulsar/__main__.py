"""By hand: `python -m tests.interop.real_pulsar install | classpath | run DIRECTORY [key=value ...]`."""

import signal
import sys
from pathlib import Path

from tests.interop.real_pulsar.launcher import DidNotStart, RealPulsar, archive_classes
from tools.engines.jars import Unavailable, class_path


def run(directory: Path, settings: dict[str, str]) -> None:
    """Runs a cluster on `directory` until it is interrupted."""
    with RealPulsar(directory, settings=settings) as pulsar:
        print(f"{pulsar.service_url} {pulsar.web_url}", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.pause()


def main(arguments: list[str]) -> int:
    """Runs one verb; returns the exit code."""
    match arguments:
        case ["install"]:
            class_path()
            print(archive_classes())
        case ["classpath"]:
            print(class_path())
        case ["run", directory, *settings]:
            run(Path(directory), dict(setting.split("=", 1) for setting in settings))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Unavailable, DidNotStart) as missing:
        print(missing, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(0)
