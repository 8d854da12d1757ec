"""``python -m interpulse.spark COMMAND``: the programs on Spark; also the main file for spark-submit.

The commands of ``interpulse replicate`` (``lag``, ``why``, ...) can be called here without that word too.
"""

from interpulse.spark.commands import COMMANDS
from interpulse.spark.job.commands import VERBS
from interpulse.terminal.lazy import LazyGroup

main = LazyGroup("spark", lazy_commands=COMMANDS, otherwise={verb.name: verb for verb in VERBS}.get)

if __name__ == "__main__":
    main(prog_name="python -m interpulse.spark")
