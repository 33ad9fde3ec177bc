"""Refusals of the role fabric."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from harness.cases import FABRIC
from refused import NO_KEY, Refused

ALONE = {"gpufarm.cluster.fabric_info": {**FABRIC, "adapters": [], "soft_roce": False}}
SOFT = [{"name": "compute", "device": "eth1", "type": "soft_roce"}]

REFUSED = {
    "fabric": [
        Refused("fabric_rail is no variable of the role", {"fabric_rail": []}),
        Refused("fabric_rails has no rail", {"fabric_rails": []}),
        Refused("there is no RDMA device mlx5_7", {"fabric_rails": [{"name": "a", "device": "mlx5_7"}]}),
        Refused("declare each rail once", {"fabric_rails": [{"name": "a", "device": "ib0"}] * 2}),
        Refused(
            "the kernel drives no RDMA adapter", {"fabric_rails": [{"name": "a", "device": "ib0"}]}, ALONE
        ),
        Refused("has no module rdma_rxe", {"fabric_rails": SOFT}, ALONE),
        Refused(
            "and no port speaks InfiniBand",
            {"fabric_rails": SOFT, "fabric_subnet_manager": True},
            {"gpufarm.cluster.fabric_info": {**FABRIC, "adapters": []}},
        ),
        Refused("which needs fabric_apt_url", {"fabric_apt_url": ""}),
        Refused("has 40 hexadecimal digits", {"fabric_apt_key_fingerprint": "3bf863cc"}),
        Refused("has no mlnx-ofed", {"fabric_vendor_packages": ["mlnx-ofed"]}),
        Refused("correct fabric_apt_key_url or fabric_apt_key_fingerprint", {}, NO_KEY),
    ],
}
