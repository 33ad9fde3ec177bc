"""How long tests and the bench wait for what must happen, before they take it for hung."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Seconds for something that takes a few on an idle machine. It ends what hangs and measures no speed.
PATIENCE = 300
