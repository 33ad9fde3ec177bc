# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the home of a user on first use; --help teaches."""

import sys

from homes._shared_home_command import main

sys.exit(main())
