"""`python -m server.cli` runs the command `epsparql`."""

import sys

from server.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
