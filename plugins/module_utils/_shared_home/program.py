# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the role shared_home puts the command that makes homes, and its settings. No I/O."""

from __future__ import annotations

COMMAND = "/usr/local/sbin/gpufarm-home"
SETTINGS = "/etc/gpufarm/shared_home.json"
