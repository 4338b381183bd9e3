"""`python -m server.cli.documentation [FOLDER]` builds the site of this checkout into FOLDER, which is by default
where the server looks for it.
"""

import sys
from pathlib import Path

from server.cli.documentation.site import SiteFault, build_site
from server.http.documentation import DIST

if __name__ == "__main__":
    try:
        build_site(Path.cwd(), Path(sys.argv[1]) if len(sys.argv) > 1 else DIST)
    except SiteFault as fault:
        sys.exit(f"docs: {fault}")
