"""``python -m refold``: the command line."""

from refold.infrastructure.cli.program import main

if __name__ == "__main__":
    main()
