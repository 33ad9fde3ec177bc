"""Run a cell in a new kernel, as JupyterLab does: ``cell.py KERNEL CODE``. Its output is printed."""

import os
import sys
from pathlib import Path

from jupyter_client.manager import start_new_kernel

PATIENCE = 300  # seconds, as in lab/patience.py

Path(os.environ["JUPYTER_RUNTIME_DIR"]).mkdir(mode=0o700, exist_ok=True)  # as the notebook server does
manager, client = start_new_kernel(startup_timeout=PATIENCE, kernel_name=sys.argv[1])
try:
    reply = client.execute_interactive(sys.argv[2], timeout=PATIENCE)
finally:
    client.stop_channels()
    manager.shutdown_kernel()
sys.exit(reply["content"]["status"] != "ok")
