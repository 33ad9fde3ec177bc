# SPDX-License-Identifier: GPL-3.0-or-later
"""A real directory (slapd) on this machine, with people, groups and TLS."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from doubles.issuer import certificate
from doubles.servers import server

BASE = "dc=example,dc=org"
SERVICE, SERVICE_PASSWORD = f"cn=paas,{BASE}", "password of the service"
CONFIGURATION = """
{includes}
modulepath {modules}
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCertificateFile {public}
TLSCertificateKeyFile {private}
# No password without encryption, no questions without a login.
security simple_bind=128
require authc
# As careless servers do: a bind without a password succeeds as nobody, for each name.
allow bind_anon_cred
database mdb
suffix "{base}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read
"""
PEOPLE = f"""
dn: {BASE}
objectClass: organization
objectClass: dcObject
o: example
dc: example

dn: {SERVICE}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: paas
userPassword: {SERVICE_PASSWORD}

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups

dn: cn=Rossi\\, Ann (Physics),ou=people,{BASE}
objectClass: inetOrgPerson
cn: Rossi, Ann (Physics)
sn: Rossi
uid: ann
mail: ann@example.org
userPassword: password of ann

dn: uid=eve,ou=people,{BASE}
objectClass: inetOrgPerson
cn: Eve
sn: Verdi
uid: eve
userPassword: password of eve

dn: uid=star*(x),ou=people,{BASE}
objectClass: inetOrgPerson
cn: Star
sn: Star
uid: star*(x)
userPassword: password of star

dn: uid=twin,ou=people,{BASE}
objectClass: inetOrgPerson
cn: Twin
sn: Twin
uid: twin
userPassword: password of twin

dn: cn=other twin,ou=people,{BASE}
objectClass: inetOrgPerson
cn: other twin
sn: Twin
uid: twin
userPassword: password of twin

dn: cn=atoms,ou=groups,{BASE}
objectClass: groupOfNames
cn: atoms
member: cn=Rossi\\, Ann (Physics),ou=people,{BASE}

dn: cn=physics,ou=groups,{BASE}
objectClass: groupOfNames
cn: physics
member: cn=atoms,ou=groups,{BASE}
member: cn=ring,ou=groups,{BASE}

dn: cn=ring,ou=groups,{BASE}
objectClass: groupOfNames
cn: ring
member: cn=physics,ou=groups,{BASE}

dn: cn=admins,ou=groups,{BASE}
objectClass: posixGroup
cn: admins
gidNumber: 30000
memberUid: eve
"""


@dataclass(frozen=True)
class Directory:
    """The directory.

    Attributes:
        url, plain: where it takes TLS at once, and StartTLS.
        ca_file: certificate of its authority.
    """

    url: str
    plain: str
    ca_file: Path


def _port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def directory(folder: Path) -> Iterator[Directory]:
    """Serve.

    Args:
        folder: of its files.
    """
    slapd = server("slapd", "usr/sbin/slapd")
    public, private = certificate(folder / "tls")
    (folder / "data").mkdir()
    schemas = slapd.root / "etc/ldap/schema"
    names = ("core", "cosine", "inetorgperson", "nis")
    configuration = CONFIGURATION.format(
        includes="\n".join(f"include {schemas}/{name}.schema" for name in names),
        modules=slapd.root / "usr/lib/ldap",
        folder=folder,
        public=public,
        private=private,
        base=BASE,
    )
    (folder / "slapd.conf").write_text(configuration)
    # slapd is told by its name that it is to fill the directory
    adding = ["slapadd", "-q", "-f", folder / "slapd.conf"]
    subprocess.run(
        adding,
        executable=slapd.path,
        env=slapd.environment,
        input=PEOPLE,
        text=True,
        check=True,
        capture_output=True,
    )
    secure, plain = _port(), _port()
    listen = f"ldaps://127.0.0.1:{secure} ldap://127.0.0.1:{plain}"
    serving = subprocess.Popen(
        [slapd.path, "-d", "0", "-f", folder / "slapd.conf", "-h", listen],
        env=slapd.environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", plain)).close()
                break
            except OSError:
                assert serving.poll() is None, "slapd has ended"
                time.sleep(0.05)
        yield Directory(f"ldaps://127.0.0.1:{secure}", f"ldap://127.0.0.1:{plain}", public)
    finally:
        serving.terminate()
        serving.wait()
