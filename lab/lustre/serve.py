#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Be the servers of file systems where no package is installed: serve.py ADDRESS FILE_SYSTEM..."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fake import network

if __name__ == "__main__":
    network.serve(*sys.argv[1:])
