# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes `python -m gpufarm` the command `gpufarm`."""

from __future__ import annotations

from gpufarm.cli import main

main()
