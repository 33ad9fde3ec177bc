# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a directory by ldapsearch, and reads the machine's own accounts."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..entries import entries

PROGRAM = "/usr/bin/ldapsearch"
# Seconds until a server counts as away, and for one answer.
CONNECTS, ANSWERS = 5, 15
_STORE = "/etc/ssl/certs/ca-certificates.crt"
# More entries were found than asked for (RFC 4511, 4.1.9), which is as good as all.
_SIZE_LIMIT_EXCEEDED = 4
# Some builds of libldap tell no more than this where the certificate is not trusted.
_CONNECT_ERROR = "Connect error (-11)"
_UNTRUSTED = " (does the authority in sssd_ca_file, or one of the machine's own store, vouch for the server?)"


class DirectoryError(Exception):
    """The directory does not answer, with the reason."""


@dataclass(frozen=True)
class Directory:
    """How a directory is asked.

    Attributes:
        servers: URLs of the servers; the first that answers is asked.
        authority: path of the authority's certificate; empty for the store of the machine.
        bind_dn: account that asks; empty to ask without logging in.
        bind_password: its password.
    """

    servers: Sequence[str]
    authority: str
    bind_dn: str
    bind_password: str

    def search(
        self, base: str, condition: str, attributes: Sequence[str], most: int = 0
    ) -> list[dict[str, str]]:
        """Return entries below a base.

        Args:
            base: distinguished name.
            condition: filter.
            attributes: the attributes that are wanted.
            most: entries that are enough; 0 for all.

        Raises:
            DirectoryError: no server answers, or what answers is not trusted or refuses.
        """
        reasons = []
        for server in self.servers:
            done = self._asked(server, base, condition, attributes, most)
            if done.returncode in (0, _SIZE_LIMIT_EXCEEDED):
                return entries(done.stdout)
            reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            reasons.append(f"{server}: {reason}{_UNTRUSTED if _CONNECT_ERROR in reason else ''}")
        raise DirectoryError("; ".join(reasons))

    def _asked(
        self, server: str, base: str, condition: str, attributes: Sequence[str], most: int
    ) -> subprocess.CompletedProcess[str]:
        words = [PROGRAM, "-LLL", "-x", "-H", server, "-o", f"nettimeout={CONNECTS}", "-o", "ldif-wrap=no"]
        words += ["-ZZ"] if server.startswith("ldap://") else []
        # From standard input, as arguments are seen by all users.
        words += ["-D", self.bind_dn, "-y", "/dev/stdin"] if self.bind_dn else []
        words += ["-z", str(most), "-b", base, condition, *attributes]
        # Variables come before files of the machine, which could switch the check off (ldap.conf(5)).
        environment = {
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "LDAPTLS_CACERT": self.authority or _STORE,
            "LDAPTLS_REQCERT": "demand",
        }
        try:
            return subprocess.run(
                words,
                input=self.bind_password,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=CONNECTS + ANSWERS,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 1, "", f"no answer within {CONNECTS + ANSWERS} seconds")


def accounts(database: str) -> dict[str, int]:
    """Return the numbers of the machine's own accounts or groups, by name.

    Args:
        database: ``passwd`` or ``group``; both have the number in the third field (passwd(5), group(5)).
    """
    lines = (line.split(":") for line in Path("/etc", database).read_text(errors="replace").splitlines())
    return {fields[0]: int(fields[2]) for fields in lines if len(fields) > 2 and fields[2].isdigit()}
