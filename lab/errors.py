"""The one exception of the bench: a sentence that names the thing, the reason and the next step."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class LabError(Exception):
    """Something the user can mend; the message is shown as it is, without a traceback."""
