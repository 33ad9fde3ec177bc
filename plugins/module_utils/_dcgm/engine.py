# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host engine of DCGM, as the role dcgm runs it. No I/O."""

from __future__ import annotations

# The host engine changes GPUs for all that can connect to it, and by itself listens on a port of the
# loopback interface, where all users of the machine can. Programs are told of a socket by `--host` (NVIDIA
# DCGM, dcgmi/CommandLineParser.cpp).
SOCKET = "/run/gpufarm-dcgm/socket"
HOST = f"unix://{SOCKET}"
