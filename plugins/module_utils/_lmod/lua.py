# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module files for Lmod: declared software as a program in Lua that holds texts only as literals. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# The first line of each file; what begins otherwise is not the role's.
HEADER = "-- Written by Ansible's role environment_modules; changes are lost."
# Folders of an installation and the variables by which programs find them, where a module names none.
USUAL: Mapping[str, Sequence[str]] = {
    "PATH": ("bin",),
    "LD_LIBRARY_PATH": ("lib", "lib64"),
    "LIBRARY_PATH": ("lib", "lib64"),
    "CPATH": ("include",),
    "MANPATH": ("man", "share/man"),
    "PKG_CONFIG_PATH": ("lib/pkgconfig", "lib64/pkgconfig", "share/pkgconfig"),
}
# Asked when the module is loaded: one tree serves machines whose folders differ. A folder that has gone since
# must leave the variable all the same.
_USUAL_FOLDER = """\
local function usual(variable, folder)
  if mode() == "unload" or isDir(folder) then prepend_path(variable, folder) end
end
"""
_NEEDS_PREFIX = """\
if mode() == "load" and not isDir({prefix}) then LmodError({prefix} .. " is not on this machine.") end
"""


def literal(text: str) -> str:
    r"""Return a text as a literal of Lua.

    Only printable ASCII stands for itself; each other byte is ``\ddd``, its number with three digits, so no
    text can end the literal (Lua 5.1 reference manual, 2.1).
    """
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in _bytes(text)
    )
    return f'"{"".join(plain)}"'


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def module_file(module: Mapping[str, Any]) -> str:
    """Return the file of a module.

    Args:
        module: an entry of ``environment_modules_modules`` with all its options, which `plan` has checked.
    """
    return "".join(f"{line}\n" for line in _lines(module))


def default_file(module: Mapping[str, Any]) -> str:
    """Return the file beside the versions of a module that says which one is the default."""
    return f'{HEADER}\nmodule_version({literal(full_name(module))}, "default")\n'


def full_name(module: Mapping[str, Any]) -> str:
    """Return name and version, as users may write them."""
    return f"{module['name']}/{module['version']}"


def _lines(module: Mapping[str, Any]) -> Iterator[str]:
    yield HEADER
    yield f"help({literal(module['description'])})"
    about = {"Name": module["name"], "Version": module["version"], "Description": module["description"]}
    for word, text in about.items():
        # Lmod shows it in one line.
        yield f"whatis({literal(word + ': ' + ' '.join(text.split()))})"
    prefix = module["prefix"]
    if prefix:
        yield _NEEDS_PREFIX.format(prefix=literal(prefix)).rstrip()
    if module["family"]:
        yield f"family({literal(module['family'])})"
    for function, names in (("conflict", module["conflicts"]), ("depends_on", module["requires"])):
        for name in names:
            yield f"{function}({literal(name)})"
    if prefix and not module["paths"]:
        yield _USUAL_FOLDER.rstrip()
        folders = [(variable, folder) for variable, names in USUAL.items() for folder in names]
        for variable, folder in folders:
            yield f"usual({literal(variable)}, {literal(f'{prefix}/{folder}')})"
    for variable, names in module["paths"].items():
        # Each is put before those that are there, so the first one has to be put there last.
        for name in reversed(names):
            folder = name if name.startswith("/") else f"{prefix}/{name}"
            yield f"prepend_path({literal(variable)}, {literal(folder)})"
    for variable, value in module["environment"].items():
        yield f"setenv({literal(variable)}, {literal(value)})"
