"""Recipe of a host's root file system: a bare Debian server that SSH reaches. Pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

PACKAGES = [
    "acl",  # Ansible becomes an unprivileged user with it
    "ca-certificates",
    "cron",
    "curl",
    "dbus",
    "gnupg",
    "iproute2",
    "iputils-ping",
    "kmod",
    "less",
    "libpam-systemd",
    "netbase",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "python3-venv",
    "sudo",
    "systemd",
    "systemd-sysv",
    "tzdata",
    "udev",
]
# A virtual machine adds a kernel; the cloud flavour has the drivers of a virtual machine and boots fast. It
# can be an NFS server then, which would take minutes to install where all is emulated.
VM_PACKAGES = ["initramfs-tools", "linux-image-cloud-amd64", "nfs-kernel-server", "zstd"]

# The host has no console to log in at and no clock of its own, and must not start apt by itself.
MASKED = [
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "e2scrub_reap.service",
    "getty.target",
    "systemd-resolved.service",
    "systemd-timesyncd.service",
]

# Raised when the builder makes something else of the same recipe.
FORMAT = 2

# Clients with a certificate store of their own are pointed at the system's, in logins and in services.
ENVIRONMENT = dict.fromkeys(
    ("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), BUNDLE
)
# Settings of this machine that its guests need as well to reach the same package indexes.
PASSED_ON = ("PIP_INDEX_URL", "npm_config_registry", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True)
class Recipe:
    """All that decides the content of an image.

    :param suite: Debian release.
    :param packages: Debian packages.
    :param mirror: URL of the Debian archive.
    :param security: URL of the security archive; "" if this machine has none.
    :param environment: variables for logins and services.
    :param certificates: file name -> PEM text of private certificate authorities.
    :param kernel: whether the image boots in a virtual machine.
    """

    suite: str
    packages: tuple[str, ...]
    mirror: str
    security: str
    environment: dict[str, str] = field(default_factory=dict)
    certificates: dict[str, str] = field(default_factory=dict)
    kernel: bool = False

    @property
    def name(self) -> str:
        """Name of the image in the cache: same content, same name."""
        content = json.dumps([asdict(self), self.sources, self.files, MASKED, FORMAT], sort_keys=True)
        return (
            f"{self.suite}{'-vm' if self.kernel else ''}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        )

    @property
    def sources(self) -> str:
        """The apt sources, in the one-line format."""
        lines = [f"{self.mirror} {self.suite} main", f"{self.mirror} {self.suite}-updates main"]
        if self.security:
            lines.append(f"{self.security} {self.suite}-security main")
        return "".join(f"deb [signed-by={KEYRING}] {line}\n" for line in lines)

    @property
    def files(self) -> dict[str, str]:
        """Path below the root -> text."""
        environment = {**ENVIRONMENT, **self.environment}
        files = {
            "etc/machine-id": "",
            "etc/environment": "".join(f"{name}={value}\n" for name, value in environment.items()),
            "etc/systemd/system.conf.d/lab-environment.conf": "[Manager]\n"
            + "".join(f"DefaultEnvironment={name}={value}\n" for name, value in environment.items()),
            "etc/pip.conf": f"[global]\ncert = {BUNDLE}\ndisable-pip-version-check = true\n",
            # A snapshot mirror has old Release dates; nobody reads translated descriptions of packages.
            "etc/apt/apt.conf.d/99lab": 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n'
            'Acquire::Languages "none";\n',
        }
        if self.kernel:
            files["etc/fstab"] = "/dev/vda / ext4 defaults,noatime 0 1\n"
        return files
