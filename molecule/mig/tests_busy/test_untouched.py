"""After changes that were refused, the seven slices are there, and the layout for the boot is theirs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json


def test_nothing_changed(host):
    layout = json.loads(host.file("/etc/gpufarm/mig.json").content_string)["layout"]
    assert [place["profile"] for place in layout[0]["partitions"]] == ["1g.10gb"] * 7
    assert host.service("gpufarm-mig").is_enabled
