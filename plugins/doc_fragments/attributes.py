# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of attributes that modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of modules that only read, and of those that change something."""

    INFO_MODULE = r"""
attributes:
  check_mode:
    support: full
    description: This module changes nothing.
  diff_mode:
    support: N/A
    description: This module changes nothing.
  idempotent:
    support: N/A
    description: This module changes nothing.
"""

    CHANGING_MODULE = r"""
attributes:
  check_mode:
    support: full
    description: Tells what would be changed, and changes nothing.
  idempotent:
    support: full
    description: A second run changes nothing.
"""
