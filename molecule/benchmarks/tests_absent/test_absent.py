"""Nothing of the role is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nothing_is_left(host):
    assert not host.file("/var/lib/gpufarm/benchmarks").exists
