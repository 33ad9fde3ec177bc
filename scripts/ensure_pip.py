"""Put pip from the standard library into this interpreter's environment, then install the packages asked for.

ansible-test runs this file as ``get_pip_<version>.py PACKAGE... --flags`` (see scripts/sanity).
"""

import subprocess
import sys

packages = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], stdout=subprocess.DEVNULL)
if packages:
    subprocess.check_call(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    )
