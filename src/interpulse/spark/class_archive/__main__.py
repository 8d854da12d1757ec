"""``python -m interpulse.spark.class_archive``: create the archive.

Spark then starts here in half the processor time.
"""

import sys

from interpulse.spark.class_archive.archive import ArchiveFailed, archive_path, make_archive

path = archive_path()
if path is not None and path.exists():
    print(f"{path} exists already; remove it to create it again")
    sys.exit()
print("Java loads the classes of Spark and keeps them; that takes a minute or two", flush=True)
try:
    made = make_archive()
except ArchiveFailed as failed:
    sys.exit(str(failed))
print(f"{made}: {made.stat().st_size / 1e6:.0f} MB")
