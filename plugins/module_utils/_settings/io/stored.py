# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that remembers which settings GPUs shall have, and which they had before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..._host.io.files import replace_file
from ..._nvml.gpu import GpuError
from ..plan import Entry

FILE = Path("/etc/gpufarm/settings.json")


def load(file: Path) -> dict[str, Entry]:
    """Return what is remembered of each GPU, by UUID; nothing if there is no file.

    Raises:
        GpuError: when the file cannot be read, or is none of this collection.
    """
    try:
        gpus = json.loads(file.read_text(encoding="utf-8"))["gpus"]
        return {uuid: Entry(entry["wanted"], entry["before"]) for uuid, entry in gpus.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise GpuError(
            f"{file} does not tell the settings of the GPUs ({error}): remove it, and run the role again."
        ) from error


def save(file: Path, entries: Mapping[str, Entry]) -> None:
    """Replace the file, or remove it if nothing is to be remembered.

    Raises:
        GpuError: when that fails.
    """
    gpus = {uuid: {"wanted": entry.wanted, "before": entry.before} for uuid, entry in entries.items()}
    try:
        if not gpus:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        replace_file(file, json.dumps({"gpus": gpus}, indent=2, sort_keys=True) + "\n", 0o644)
    except OSError as error:
        raise GpuError(f"{file} cannot be written ({error.strerror}): run this as root.") from error
