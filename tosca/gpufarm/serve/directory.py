# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a directory (LDAP) who signs in with a name and a password."""

from __future__ import annotations

import contextlib
import logging
import secrets
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import ldap3
from ldap3.core import exceptions
from ldap3.core.results import RESULT_SUCCESS
from ldap3.protocol.sasl.sasl import validate_simple_password
from ldap3.utils.conv import escape_filter_chars

from gpufarm.serve.refusals import NoAnswer, Unauthorized
from gpufarm.serve.settings import Issuer

LOG = logging.getLogger("gpufarm.serve")
# Seconds for a connection, and for each answer.
PATIENCE = 5
# Letters of a name and of a password.
LONGEST = 255
# Groups within groups are followed so far, with so many groups in one question.
NESTED, AT_ONCE = 8, 50
# Permanent ids of entries, unlike their names: RFC 4530, 389 Directory Server, Active Directory.
IDENTIFIERS = ("entryUUID", "nsUniqueId", "objectGUID")
# One sentence for every name and every password, so that nobody learns which names there are.
WRONG = "the name or the password is wrong"
_AWAY = "the directory cannot tell now who signs in; try again later, or tell the operator of this service"
# Answers to a wrong password, to an entry without one, and to an account that is locked (RFC 4511, A.2).
_REFUSALS = (
    exceptions.LDAPInvalidCredentialsResult,
    exceptions.LDAPInappropriateAuthenticationResult,
    exceptions.LDAPUnwillingToPerformResult,
    exceptions.LDAPConstraintViolationResult,
    exceptions.LDAPNoSuchObjectResult,
)


class _Unfit(Exception):
    """The directory does not answer as the settings say; the text is for the operator."""


class _Tls(ldap3.Tls):  # type: ignore[misc]
    """TLS with the checks of Python's own library, which compares host names and addresses."""

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


class Directory:
    """A directory of the settings."""

    def __init__(self, issuer: Issuer) -> None:
        """Prepare; nothing is asked yet.

        Args:
            issuer: with the settings of the directory.
        """
        assert issuer.directory
        self._issuer = issuer
        self._settings = issuer.directory

    def check(self) -> None:
        """Ask as at a sign-in, for any user there is.

        Raises:
            NoAnswer: the directory does not answer as the settings say; unlike at a sign-in, the sentence is
                for the operator.
        """
        settings = self._settings
        try:
            with self._connected() as connection:
                self._ask_as_service(connection)
                question = f"(&({settings.user_attribute}=*){settings.user_filter})"
                dn, name = _any(connection, settings.user_base, question, settings.user_attribute)
                self._groups(connection, dn, name)
        except (_Unfit, exceptions.LDAPException, OSError) as error:
            why = " ".join(str(error).split())
            raise NoAnswer(f"directory {self._issuer.url}: {why}; correct its settings") from error

    def claims(self, name: str, password: str) -> dict[str, Any]:
        """Tell who has a name and a password.

        Args:
            name: as the user has entered it.
            password: likewise.

        Returns:
            The claims that an OpenID Connect provider would make: ``sub``, a permanent id of the entry;
            ``preferred_username``, the name as the directory has it; ``name``, ``email``, and the groups.

        Raises:
            Unauthorized: it is nobody's name, or not the password; the sentence is always the same.
            NoAnswer: the directory does not answer.
        """
        secret = _prepared(password)
        if not _fit(name) or not secret:
            raise Unauthorized(WRONG)
        try:
            with self._connected() as connection:
                self._ask_as_service(connection)
                found = self._found(connection, name)
                # A name that is nobody's has as many questions as another one.
                dn = found[0] if found else f"cn={secrets.token_hex(16)},{self._settings.user_base}"
                if not _bound(connection, dn, secret) or found is None:
                    raise Unauthorized(WRONG)
                self._ask_as_service(connection)
                groups = self._groups(connection, dn, found[1]["preferred_username"])
                return {**found[1], self._issuer.groups_claim: groups}
        except (_Unfit, exceptions.LDAPException, OSError) as error:
            LOG.error("directory %s: %s", self._issuer.url, " ".join(str(error).split()))
            raise NoAnswer(_AWAY) from error

    def _ask_as_service(self, connection: Any) -> None:
        settings = self._settings
        if settings.bind_dn and settings.password_file:
            secret = _prepared(settings.password_file.read_text(encoding="utf-8").strip())
            accepted = bool(secret) and _bound(connection, settings.bind_dn, secret)
        else:
            connection.user, connection.password, connection.authentication = None, None, ldap3.ANONYMOUS
            accepted = bool(connection.bind())
        if not accepted:
            raise _Unfit("it does not accept bind_dn with the password of bind_password_file")

    def _found(self, connection: Any, name: str) -> tuple[str, dict[str, Any]] | None:
        """The distinguished name and the claims of the one entry with a name, without its groups."""
        settings = self._settings
        own = f"({settings.user_attribute}={escape_filter_chars(name)})"
        wanted = [settings.user_attribute, "cn", "mail", *IDENTIFIERS]
        entries = _search(connection, settings.user_base, f"(&{own}{settings.user_filter})", wanted)
        if len(entries) > 1:
            raise _Unfit(
                f"{len(entries)} entries have the same {settings.user_attribute}; narrow user_filter"
            )
        if not entries:
            return None
        dn, values = entries[0]
        # Directories take "ANN" and " ann " for "ann"; the name is the one that they have.
        names = (one for one in _texts(values, settings.user_attribute) if one.lower() == name.lower())
        written = next(names, "")
        if not written or not dn:
            return None
        claims = {
            "sub": _identifier(values) or written,
            "preferred_username": written,
            "name": next(iter(_texts(values, "cn")), ""),
            "email": next(iter(_texts(values, "mail")), ""),
        }
        return dn, {key: value for key, value in claims.items() if value}

    def _groups(self, connection: Any, dn: str, name: str) -> list[str]:
        settings = self._settings
        if not settings.group_base:
            return []
        names: set[str] = set()
        seen: set[str] = set()
        parts = {"dn": escape_filter_chars(dn), "uid": escape_filter_chars(name)}
        questions = [settings.group_filter.replace("{dn}", parts["dn"]).replace("{uid}", parts["uid"])]
        for _level in range(NESTED):
            fresh: list[str] = []
            for question in questions:
                for group, values in _search(
                    connection, settings.group_base, question, [settings.group_attribute]
                ):
                    if group not in seen:
                        seen.add(group)
                        fresh.append(group)
                        names.update(_texts(values, settings.group_attribute))
            questions = [*_holders(fresh)]
        return sorted(names)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = self._first_that_answers()
        try:
            yield connection
        finally:
            with contextlib.suppress(exceptions.LDAPException, OSError):
                connection.unbind()

    def _first_that_answers(self) -> Any:
        failures = []
        for url in self._settings.servers:
            try:
                return _opened(url, str(self._issuer.ca_file or ""))
            except (exceptions.LDAPException, OSError) as error:
                failures.append(f"{url}: {error}")
        raise _Unfit("; ".join(failures))


def _opened(url: str, ca_file: str) -> Any:
    """A connection that is encrypted before anybody logs in, by StartTLS where the URL has `ldap`."""
    parts = urlsplit(url)
    encrypted = parts.scheme == "ldaps"
    server = ldap3.Server(
        parts.hostname,
        port=parts.port or (636 if encrypted else 389),
        use_ssl=encrypted,
        tls=_Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=ca_file or None),
        get_info=ldap3.NONE,
        connect_timeout=PATIENCE,
    )
    connection = ldap3.Connection(
        server,
        auto_referrals=False,  # passwords are for this server and for none that it refers to
        check_names=False,
        raise_exceptions=True,
        read_only=True,
        receive_timeout=PATIENCE,
    )
    connection.open()
    if not encrypted and not connection.start_tls():
        raise _Unfit(f"{url} does not encrypt the connection")
    return connection


def _prepared(password: str) -> bytes:
    """A password as it is sent (RFC 4513, section 5.1.3); empty for a text that can be none.

    Some characters, such as the soft hyphen, are mapped to nothing. A bind with a name and an empty password
    succeeds as nobody (RFC 4513, section 5.1.2).
    """
    try:
        return bytes(validate_simple_password(password)) if len(password) <= LONGEST else b""
    except (exceptions.LDAPException, ValueError):
        return b""


def _bound(connection: Any, dn: str, password: bytes) -> bool:
    """Log in, and tell whether the directory accepts it."""
    connection.user, connection.password, connection.authentication = dn, password, ldap3.SIMPLE
    try:
        return bool(connection.bind())
    except _REFUSALS:
        return False


def _search(
    connection: Any, base: str, question: str, attributes: list[str]
) -> list[tuple[str, Mapping[str, list[bytes]]]]:
    """Distinguished names and attributes of what matches."""
    connection.search(base, question, ldap3.SUBTREE, attributes=attributes)
    # ldap3 raises nothing for an answer that was cut short, or for a referral.
    if connection.result["result"] != RESULT_SUCCESS:
        raise _Unfit(f"it does not tell all that is below {base}: {connection.result['description']}")
    entries = (entry for entry in connection.response or () if entry["type"] == "searchResEntry")
    return [(entry["dn"], entry["raw_attributes"]) for entry in entries]


def _any(connection: Any, base: str, question: str, attribute: str) -> tuple[str, str]:
    """The distinguished name and the attribute of some entry that matches."""
    connection.search(base, question, ldap3.SUBTREE, attributes=[attribute], size_limit=1)
    for entry in connection.response or ():
        if entry["type"] == "searchResEntry":
            return entry["dn"], next(iter(_texts(entry["raw_attributes"], attribute)), "")
    raise _Unfit(f"it shows no entry below {base} that matches {question}")


def _holders(groups: list[str]) -> Iterator[str]:
    """Filters for the groups that these groups are members of."""
    for start in range(0, len(groups), AT_ONCE):
        dns = [escape_filter_chars(dn) for dn in groups[start : start + AT_ONCE]]
        yield "(|" + "".join(f"(member={dn})(uniqueMember={dn})" for dn in dns) + ")"


def _fit(name: str) -> bool:
    return 0 < len(name) <= LONGEST and name.isprintable() and name == name.strip()


def _texts(values: Mapping[str, list[bytes]], attribute: str) -> list[str]:
    """The values of an attribute, whatever case the directory writes its name in."""
    found = next((raw for key, raw in values.items() if key.lower() == attribute.lower()), [])
    return [value.decode("utf-8", "replace") for value in found]


def _identifier(values: Mapping[str, list[bytes]]) -> str:
    for attribute in IDENTIFIERS:
        if values.get(attribute):
            value = values[attribute][0]
            return value.hex() if attribute == "objectGUID" else value.decode("utf-8", "replace")
    return ""
