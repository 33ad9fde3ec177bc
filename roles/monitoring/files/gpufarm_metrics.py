# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the metrics of GPUs, slices and certificates; the argument is the path of the settings."""

import sys

from metrics._gpu_metrics_command import main

sys.exit(main(sys.argv[1:]))
