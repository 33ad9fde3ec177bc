# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether the GPUs of this machine are well; --help teaches."""

import sys

from health._health_command import main

sys.exit(main())
