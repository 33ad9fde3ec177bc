# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-network: change the network of a machine, and go back unless that is confirmed."""

from __future__ import annotations

import argparse
import sys

from . import change, failover
from .read import NetworkError


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="gpufarm-network", description=__doc__.partition(": ")[2])
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("apply", help="make the change that has begun (the timer of a change calls it)")
    steps.add_parser("confirm", help="keep the change")
    steps.add_parser("restore", help="put the former configuration back unless the change is confirmed")
    tried = steps.add_parser("failover", help="take each link of a bond down and put it up again")
    tried.add_argument("bond")
    tried.add_argument("--member", action="append", default=[], help="a member of the bond")
    tried.add_argument("--gateway", action="append", default=[], help="address that must answer meanwhile")
    words = parser.parse_args()
    try:
        if words.step == "failover":
            failover.attempt(words.bond, words.member, words.gateway)
        else:
            {"apply": change.apply, "confirm": change.confirm, "restore": change.restore}[words.step]()
    except NetworkError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error.filename} cannot be read or changed: {error.strerror}.\n")
        return 1
    return 0
