#!/usr/bin/env python3
"""Ask for an app again and again, over a new connection each time, one after the other.

usage: visitor.py URL AUTHORITY APP FILE

FILE has how often the app answered, by agent, and what went wrong when it did not.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

PAUSE = 0.05  # seconds between requests


def main() -> None:
    """Ask until the end."""
    url, authority, app, file = sys.argv[1:]
    context = ssl.create_default_context(cafile=authority)
    answered: Counter[str] = Counter()
    failed: list[str] = []
    partial = Path(file).with_suffix(".partial")
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10, context=context) as answer:
                told = json.load(answer)
            if told["app"] == app:
                answered[told["host"]] += 1
            else:
                failed.append(f"{told['app']} answers")
        except (OSError, ValueError, http.client.HTTPException) as error:
            failed.append(f"{time.strftime('%T')} {error}")
        partial.write_text(json.dumps({"answered": answered, "failed": failed}))
        partial.replace(file)
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
