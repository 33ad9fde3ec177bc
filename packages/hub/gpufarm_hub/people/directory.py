# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory (LDAP) that knows users, passwords and groups.

``python -m gpufarm_hub.people.directory`` reads settings with the key ``bind_password`` from its standard
input, asks the directory for what they name, and says in one sentence what it does not find.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ldap3
from ldap3.core import exceptions
from ldap3.core.results import RESULT_SIZE_LIMIT_EXCEEDED, RESULT_SUCCESS
from ldap3.protocol.sasl.sasl import validate_simple_password
from ldap3.utils.conv import escape_filter_chars

TIMEOUT = 5  # seconds for a connection, and for each answer
NESTED = 8  # groups within groups are followed so far
AT_ONCE = 50  # groups in one question, as servers bound the size of a filter

# Permanent ids of entries, unlike their names: RFC 4530, 389 Directory Server, Active Directory.
IDENTIFIERS = ("entryUUID", "nsUniqueId", "objectGUID")
# The server says so of a wrong password, of an entry without one, and of an account that is locked.
REFUSALS = (
    exceptions.LDAPInvalidCredentialsResult,
    exceptions.LDAPInappropriateAuthenticationResult,
    exceptions.LDAPUnwillingToPerformResult,
    exceptions.LDAPConstraintViolationResult,
    exceptions.LDAPNoSuchObjectResult,
)


class DirectoryError(Exception):
    """The directory does not answer, or not as the settings say; the text is for the administrator."""


@dataclass(frozen=True)
class Address:
    """Where a directory server listens.

    Attributes:
        host: name or address.
        port: TCP port.
        tls: "connect" (ldaps), "start" (StartTLS), or "" for none.
    """

    host: str
    port: int
    tls: str


def parse_url(url: str) -> Address:
    """Read an LDAP URL (RFC 4516) that has a scheme, a host and perhaps a port.

    With ``ldap://`` the connection is encrypted by StartTLS (RFC 4511, section 4.14), except to this machine
    itself.

    Raises:
        DirectoryError: it is no such URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise DirectoryError(f"{url!r:.60} is no URL of a directory: {error}.") from error
    if parts.scheme not in ("ldap", "ldaps") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise DirectoryError(
            f"{url!r:.60} is no URL of a directory; give one such as ldaps://ldap.example.org."
        )
    if parts.scheme == "ldaps":
        return Address(parts.hostname, port or 636, "connect")
    return Address(parts.hostname, port or 389, "" if _is_loopback(parts.hostname) else "start")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Entry:
    """A user in the directory.

    Attributes:
        name: value of the attribute that users log in with, in small letters.
        dn: distinguished name.
        identifier: what stays the same when the entry is renamed; the distinguished name where nothing does.
        uid: number of the POSIX account (RFC 2307), if the entry has one.
        groups: names of the groups that the user is in, also by way of other groups.
    """

    name: str
    dn: str
    identifier: str
    uid: int | None
    groups: frozenset[str]


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """TLS with the checks of Python's own library, which knows host names and addresses."""

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Encrypt the connection, once the server has shown that it is the one it was called by."""
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


def open_connection(address: Address, ca_file: str) -> ldap3.Connection:
    """Connect, with TLS where the address says so; nobody is logged in yet.

    Raises:
        ldap3.core.exceptions.LDAPException: it failed.
    """
    server = ldap3.Server(
        address.host,
        port=address.port,
        use_ssl=address.tls == "connect",
        tls=_Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=ca_file or None),
        get_info=ldap3.NONE,
        connect_timeout=TIMEOUT,
    )
    connection = ldap3.Connection(
        server,
        # Passwords are for this server and for none that it refers to.
        auto_referrals=False,
        check_names=False,
        raise_exceptions=True,
        read_only=True,
        receive_timeout=TIMEOUT,
    )
    connection.open()
    if address.tls == "start":
        connection.start_tls()
    return connection


@dataclass(frozen=True)
class Directory:
    """Asks the directory.

    Attributes:
        urls: servers with the same content, the first that answers is asked.
        ca_file: certificates of the servers' authorities; empty for those of the system.
        bind_dn: who asks; empty to ask without logging in.
        bind_password: their password.
        user_base: where users are.
        user_attribute: what users log in with.
        user_filter: what else users must match (RFC 4515); empty for nothing.
        group_base: where groups are.
        group_attribute: what groups are called by.
        group_filter: finds the groups of a user, with ``{dn}`` and ``{uid}`` in their place.
        connect: opens a connection.
    """

    urls: tuple[str, ...]
    ca_file: str
    bind_dn: str
    bind_password: str
    user_base: str
    user_attribute: str
    user_filter: str
    group_base: str
    group_attribute: str
    group_filter: str
    connect: Callable[[Address, str], Any] = open_connection

    def find(self, name: str) -> Entry | None:
        """Return the user of this name with their groups, or None.

        Raises:
            DirectoryError: the directory cannot tell.
        """
        with self._asking() as connection:
            wanted = f"({self.user_attribute}={escape_filter_chars(name)})"
            attributes = [self.user_attribute, "uidNumber", *IDENTIFIERS]
            found = _search(connection, self.user_base, f"(&{wanted}{self.user_filter})", attributes)
            if len(found) > 1:
                raise DirectoryError(
                    f"{len(found)} entries below {self.user_base} match {wanted}; narrow the filter of users."
                )
            if not found:
                return None
            dn, values = found[0]
            # Servers take "ALICE" and " alice " for the same; the account must be one.
            own = [_text(value).lower() for value in values.get(self.user_attribute, ())]
            if name not in own:
                return None
            return Entry(
                name=name,
                dn=dn,
                identifier=_identifier(dn, values),
                uid=_number(values.get("uidNumber")),
                groups=self._groups(connection, dn, name),
            )

    def accepts(self, entry: Entry, password: str) -> bool:
        """Tell whether this is the user's password.

        Raises:
            DirectoryError: the directory cannot tell.
        """
        # Some characters, such as the soft hyphen, are mapped to nothing (RFC 4013). At some servers a bind
        # with a name and an empty password succeeds as nobody (RFC 4513, section 5.1.2).
        try:
            prepared = validate_simple_password(password)
        except (exceptions.LDAPException, ValueError):
            return False
        if not prepared:
            return False
        with self._connected() as connection:
            try:
                _log_in(connection, entry.dn, prepared)
            except REFUSALS:
                return False
        return True

    def check(self, groups: Iterable[str]) -> None:
        """Look for what the settings name.

        Raises:
            DirectoryError: something is not there.
        """
        with self._asking() as connection:
            wanted = f"(&({self.user_attribute}=*){self.user_filter})"
            if not _is_any(connection, self.user_base, wanted):
                raise DirectoryError(f"The directory shows no users {wanted} below {self.user_base}.")
            for group in groups:
                wanted = f"({self.group_attribute}={escape_filter_chars(group)})"
                if not _is_any(connection, self.group_base, wanted):
                    raise DirectoryError(f"The directory shows no group {wanted} below {self.group_base}.")

    def _groups(self, connection: Any, dn: str, name: str) -> frozenset[str]:
        names: set[str] = set()
        seen: set[str] = set()
        own = self.group_filter.replace("{dn}", escape_filter_chars(dn))
        questions = [own.replace("{uid}", escape_filter_chars(name))]
        for _level in range(NESTED):
            fresh = []
            for question in questions:
                for group, values in _search(connection, self.group_base, question, [self.group_attribute]):
                    if group not in seen:
                        seen.add(group)
                        fresh.append(group)
                        names.update(_text(value) for value in values.get(self.group_attribute, ()))
            questions = list(_holders(fresh))
        return frozenset(names)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Any]:
        with self._connected() as connection:
            try:
                _log_in(connection, self.bind_dn, self.bind_password)
            except REFUSALS as error:
                asker = self.bind_dn or "questions without a bind account"
                raise DirectoryError(f"The directory refuses {asker}: {error.description}.") from error
            yield connection

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = self._first_that_answers()
        try:
            yield connection
        except exceptions.LDAPException as error:
            raise DirectoryError(
                f"The directory {connection.server.name} fails: {_reason(error)}."
            ) from error
        finally:
            with contextlib.suppress(exceptions.LDAPException, OSError):
                connection.unbind()

    def _first_that_answers(self) -> Any:
        reasons = []
        for url in self.urls:
            try:
                return self.connect(parse_url(url), self.ca_file)
            except (exceptions.LDAPException, OSError) as error:
                reasons.append(f"{url}: {_reason(error)}")
        raise DirectoryError(f"No directory answers ({'; '.join(reasons)}).")


def _holders(groups: list[str]) -> Iterator[str]:
    """Return filters for the groups that these groups are members of."""
    for start in range(0, len(groups), AT_ONCE):
        dns = [escape_filter_chars(dn) for dn in groups[start : start + AT_ONCE]]
        yield "(|" + "".join(f"(member={dn})(uniqueMember={dn})" for dn in dns) + ")"


def _log_in(connection: Any, dn: str, password: str | bytes) -> None:
    """Log in to the directory, or with an empty name ask as nobody."""
    if dn:
        connection.user, connection.password, connection.authentication = dn, password, ldap3.SIMPLE
    if not connection.bind():  # ldap3 raises for refusals, but not for a referral to another server
        raise DirectoryError(f"The directory lets nobody log in: {connection.result['description']}.")


def _ask(connection: Any, base: str, question: str, attributes: list[str], most: int = 0) -> int:
    """Search, and return the result's code (RFC 4511, section 4.1.9); `most` bounds the answer unless 0."""
    try:
        connection.search(base, question, ldap3.SUBTREE, attributes=attributes, size_limit=most)
    except exceptions.LDAPNoSuchObjectResult as error:
        raise DirectoryError(f"The directory shows nothing at {base}.") from error
    except exceptions.LDAPInvalidFilterError as error:
        raise DirectoryError(f"{question} is no filter of a directory: {error}.") from error
    return int(connection.result["result"])


def _search(
    connection: Any, base: str, question: str, attributes: list[str]
) -> list[tuple[str, Mapping[str, list[bytes]]]]:
    """Return distinguished names and attributes (as bytes) of what matches."""
    # ldap3 raises nothing for an answer that was cut short, or for a referral.
    if _ask(connection, base, question, attributes) != RESULT_SUCCESS:
        description = connection.result["description"]
        raise DirectoryError(f"The directory does not tell all that matches {question}: {description}.")
    return [
        (answer["dn"], answer["raw_attributes"])
        for answer in connection.response or ()
        if answer["type"] == "searchResEntry"
    ]


def _is_any(connection: Any, base: str, question: str) -> bool:
    """Tell whether anything matches."""
    result = _ask(connection, base, question, ["1.1"], most=1)  # RFC 4511, section 4.5.1.8: no attributes
    return result == RESULT_SIZE_LIMIT_EXCEEDED or bool(connection.response)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _number(values: list[bytes] | None) -> int | None:
    return int(values[0]) if values and values[0].isdigit() else None


def _identifier(dn: str, values: Mapping[str, list[bytes]]) -> str:
    for attribute in IDENTIFIERS:
        if values.get(attribute):
            value = values[attribute][0]
            return value.hex() if attribute == "objectGUID" else _text(value)
    return dn.lower()


def _reason(error: Exception) -> str:
    if isinstance(error, exceptions.LDAPOperationResult):
        return str(error.description)
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def from_settings(login: Mapping[str, Any], bind_password: str | None = None) -> Directory:
    """Return the directory of the settings' part about the login.

    Args:
        login: that part.
        bind_password: the password, unless it is to be read from the settings' file.
    """
    if bind_password is None:
        file = login["bind_password_file"]
        bind_password = Path(file).read_text(encoding="utf-8") if file else ""
    names = (
        "ca_file", "bind_dn", "user_base", "user_attribute", "user_filter", "group_base", "group_attribute",
        "group_filter",
    )  # fmt: skip
    return Directory(
        urls=tuple(login["urls"]), bind_password=bind_password, **{name: login[name] for name in names}
    )


def main() -> int:
    """Check the settings on standard input; the exit status is 1 when something is wrong."""
    login = json.load(sys.stdin)
    try:
        from_settings(login, login["bind_password"]).check([*login["groups"], *login["admin_groups"]])
    except DirectoryError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
