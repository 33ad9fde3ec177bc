# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of apt about a source is parsed; apt itself is run on hosts of the bench."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.gpufarm.cluster.plugins.modules import apt_source_info


def test_versions_keep_apts_order_and_are_named_once() -> None:
    text = """\
lustre-client-utils |   2.15.9-1 | http://mirror.example.org/lustre ./ Packages
lustre-client-utils |   2.15.8-1 | http://mirror.example.org/lustre ./ Packages
lustre-client-utils |   2.15.8-1 | http://mirror.example.org/lustre ./ Sources
lustre-client-modules-dkms | 2.15.8-1 | http://mirror.example.org/lustre ./ Packages
N: a notice
"""
    assert apt_source_info.parse(text) == {
        "lustre-client-utils": ["2.15.9-1", "2.15.8-1"],
        "lustre-client-modules-dkms": ["2.15.8-1"],
    }


def test_no_file_of_the_machine_is_used(tmp_path: Path) -> None:
    values = dict(word.split("=", 1) for word in apt_source_info.options(tmp_path)[1::2])
    for name, value in values.items():
        if name.startswith("Dir::"):
            assert value == "/dev/null" or Path(value).is_relative_to(tmp_path), name
