# SPDX-License-Identifier: GPL-3.0-or-later
"""What every notebook server of this environment loads."""

import sys
from pathlib import Path

sys.path.append(str(Path(sys.prefix) / "gpufarm-notebook"))
c = get_config()  # noqa: F821  # pylint: disable=undefined-variable
c.ServerApp.jpserver_extensions = {"gpufarm_notices": True}
