"""Entry point ``python -m interpulse.cli``, for environments without the script ``interpulse``."""

from interpulse.cli.main import main

if __name__ == "__main__":
    main(prog_name="interpulse")
