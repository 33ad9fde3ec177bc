# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries under the names that the extension was linked with: libssl, libcrypto 1.0 and libcurl of Debian
9.

With TLS off it calls only hashes, which go on to the system's libcrypto, and libcurl, which goes on to
the system's. Everything else of OpenSSL has only to be there.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# CRAM-MD5 and checksums; nothing else is called while TLS is off
REAL = frozenset(("SHA256", "HMAC", "EVP_sha1", "EVP_sha256"))
WANTED = re.compile(r"\*UND\*.*\((OPENSSL_[0-9.]+|CURL_OPENSSL_3)\)\s+(\w+)$", re.MULTILINE)
INCLUDES = "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
ARGUMENTS = "void *a, void *b, void *c, void *d, void *e, void *f, void *g"


def _forward(name: str, library: str) -> str:
    """A function that hands its arguments on to that of the same name in a library."""
    find = f'dlsym(dlopen("{library}", RTLD_NOW | RTLD_LOCAL), "{name}")'
    body = f"static void *(*real)(); if (!real) real = {find}; return real(a, b, c, d, e, f, g);"
    return f"void *{name}({ARGUMENTS}) {{ {body} }}\n"


def _library(name: str) -> str:
    """Absolute path of one of the system's libraries: by its name alone the fake would find itself."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s*{re.escape(name)} \(libc6,x86-64\) => (\S+)$", listed, re.MULTILINE)
    if not found:
        raise RuntimeError(f"{name} is missing on this machine")
    return found[1]


def _compile(folder: Path, soname: str, code: str, versions: str) -> None:
    source, script = folder / f"{soname}.c", folder / f"{soname}.map"
    source.write_text(INCLUDES + code)
    script.write_text(versions)
    words: list[str | Path] = [
        "gcc",
        "-w",
        "-shared",
        "-fPIC",
        "-o",
        folder / soname,
        f"-Wl,-soname,{soname}",
    ]
    subprocess.run([*words, f"-Wl,--version-script={script}", source, "-ldl"], check=True)


def make(extension: Path, folder: Path) -> None:
    """Make the libraries that an extension asks for.

    :param folder: where they go; for ``LD_LIBRARY_PATH``
    """
    folder.mkdir()
    symbols = subprocess.run(["objdump", "-T", extension], capture_output=True, text=True, check=True).stdout
    wanted: dict[str, set[str]] = {}
    for version, name in WANTED.findall(symbols):
        wanted.setdefault(version, set()).add(name)
    curl = sorted(wanted.pop("CURL_OPENSSL_3"))
    versions, before = "", ""
    for version, names in sorted(wanted.items()):
        hidden = "" if before else " local: *;"
        versions += f"{version} {{ global: {'; '.join(sorted(names))};{hidden} }} {before};\n"
        before = version
    crypto = _library("libcrypto.so.3")
    code = "".join(
        _forward(name, crypto) if name in REAL else f"long {name}(void) {{ return 0; }}\n"
        for name in sorted(set().union(*wanted.values()))
    )
    for soname in ("libssl.so.1.0.0", "libcrypto.so.1.0.0"):
        _compile(folder, soname, code, versions)
    system_curl = _library("libcurl.so.4")
    _compile(
        folder,
        "libcurl.so.4",
        "".join(_forward(name, system_curl) for name in curl),
        f"CURL_OPENSSL_3 {{ global: {'; '.join(curl)}; local: *; }};\n",
    )
