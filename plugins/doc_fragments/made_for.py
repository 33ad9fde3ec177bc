# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules share which keep an app or a job of a deployment."""

from __future__ import annotations


class ModuleDocFragment:
    """For whom something is made (plugins/module_utils/_made_for.py, OPTIONS)."""

    DOCUMENTATION = r"""
options:
  made_for:
    description:
      - For whom it is made, such as a deployment; empty for nobody in particular. An app of Marathon has it
        as a label, a job of Chronos as a variable of its environment, and a job of Slurm in the memory of the
        module.
      - It is not changed, and not removed, when it was made for somebody else.
    type: str
    default: ""
  take_over:
    description: Whether what was made for somebody else is changed or removed all the same.
    type: bool
    default: false
"""
