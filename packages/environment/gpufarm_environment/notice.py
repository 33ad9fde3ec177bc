# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences for the user, which JupyterLab shows (package gpufarm-notices)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PATTERN = "gpufarm-environment-{name}-{about}.txt"


def tell(name: str, about: str, sentence: str) -> None:
    """Show a sentence about an environment, or none any more if it is empty.

    Args:
        name: of the environment.
        about: what the sentence is about; it takes the place of the last one about that.
        sentence: what the user is told.
    """
    folder = os.environ.get("JUPYTER_RUNTIME_DIR", "")
    if not folder:
        return
    file = Path(folder) / PATTERN.format(name=name, about=about)
    with contextlib.suppress(OSError):  # a full disk keeps no kernel from its start
        if sentence:
            file.write_text(sentence, encoding="utf-8")
        else:
            file.unlink(missing_ok=True)
