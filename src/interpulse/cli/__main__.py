"""``python -m interpulse.cli``: ``interpulse`` where its script is not on the path."""

from interpulse.cli.main import main

if __name__ == "__main__":
    main(prog_name="interpulse")
