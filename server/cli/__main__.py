"""`python -m server.cli` is the command `epsparql`."""

import sys

from server.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
