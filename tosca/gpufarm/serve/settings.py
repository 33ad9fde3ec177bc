# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings file of the service. docs/serve.md describes each entry."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufarm import document
from gpufarm.errors import BadInput
from gpufarm.serve.fields import Fields, ldap
from gpufarm.serve.quotas import Quota, Quotas

# Signatures by a key that only the issuer has (RFC 7518, RFC 8037); never by a shared one, and never none.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
OPAQUE = ("refuse", "introspection", "userinfo")
# Names in the answer to GET /configuration.
CONFIGURATION = (
    *("cpr_url", "slam_url", "cmdb_url", "im_url"),
    *("monitoring_url", "vault_url", "rucio_url"),
)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")  # RFC 4512, section 2.5
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*")
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Directory:
    """A directory (LDAP) that knows passwords and groups of users.

    Attributes:
        servers: URLs of servers with the same content, of which the first that answers is asked.
        bind_dn: who asks for users and groups; empty to ask without a login.
        password_file: has its password; None for none.
        user_base, user_attribute, user_filter: where users are, the attribute with their names, and what else
            they have to match.
        group_base, group_attribute, group_filter: where groups are, the attribute with their names, and how
            those of a user are found, with ``{dn}`` and ``{uid}`` in the place of the user's.
    """

    servers: tuple[str, ...]
    bind_dn: str
    password_file: Path | None
    user_base: str
    user_attribute: str
    user_filter: str
    group_base: str
    group_attribute: str
    group_filter: str


@dataclass(frozen=True)
class Issuer:
    """An issuer of access tokens, or a directory whose users sign in on the pages.

    Attributes:
        url: its name, as in the claim ``iss``.
        audience: of which a token has to name one; empty if tokens have none.
        administrators: group of the administrators; empty for none.
        groups_claim: claim that has the groups.
        algorithms: of signatures that are accepted.
        opaque: whether and how tokens are checked that are no JWT.
        client_id: of this service, for the introspection.
        secret_file: has the secret of this client; None for none.
        ca_file: certificates of its authority; None for those of the machine.
        login_claim: claim with the name of a user's account on machines; empty if they have none.
        directory: that this is; None for a provider of OpenID Connect.
    """

    url: str
    audience: tuple[str, ...] = ()
    administrators: str = ""
    groups_claim: str = "groups"
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    opaque: str = "refuse"
    client_id: str = ""
    secret_file: Path | None = None
    ca_file: Path | None = None
    login_claim: str = ""
    directory: Directory | None = None


@dataclass(frozen=True)
class Pages:
    """The pages of this service itself.

    Attributes:
        issuer: at which users sign in; one of the issuers.
        client_id: of this service there; empty for a directory.
        secret_file: has the secret of this client; None for a directory.
    """

    issuer: str
    client_id: str = ""
    secret_file: Path | None = None


@dataclass(frozen=True)
class Offer:
    """A template that users may deploy.

    Attributes:
        name: in lists and logs.
        template: a file, or the bare name of a template of the collection.
        groups: of which a user has to be in one; empty for everybody.
        issuers: of which a user has to be; empty for all.
        people: claim of the user that an input gets, whatever the request says.
        form: file with the form of the dashboard; None for that of the collection, or none.
        accounts: whether users have the same accounts on machines of its deployments as on those of the site.
    """

    name: str
    template: str
    groups: frozenset[str] = frozenset()
    people: Mapping[str, str] | None = None
    issuers: frozenset[str] = frozenset()
    form: Path | None = None
    accounts: bool = False


@dataclass(frozen=True)
class Settings:
    """All settings.

    Attributes:
        url: public address of this service, without a slash at its end.
        address, port: on which it listens, for a proxy on the same machine.
        folder: private one, for the key of secrets and, unless said otherwise, the database.
        database: its URL.
        state, pool, password_file: of the deployer.
        issuers: of access tokens.
        offers: templates that users may deploy.
        quotas: of users and groups.
        callback_hosts: that callbacks may name.
        callback_private: those of them that may have a private address.
        callback_ca_file: certificates of their authority; None for those of the machine.
        body: largest body of a request in bytes.
        requests: of a user, or from an address without a valid token, in a minute.
        timeout: longest run in minutes.
        lease: seconds after which a silent worker is lost.
        keep: days for which a deployment that is gone is remembered; 0 without an end.
        metrics: networks from which the metrics may be read.
        configuration: URLs of other services, for clients.
        pages: of this service itself; None if it has none.
        hours_minutes: between two readings of the hours that users held resources; 0 for none.
    """

    url: str
    address: str
    port: int
    folder: Path
    database: str
    state: Path
    pool: Path
    password_file: Path | None
    issuers: tuple[Issuer, ...]
    offers: tuple[Offer, ...]
    quotas: Quotas
    callback_hosts: frozenset[str]
    callback_private: frozenset[str]
    callback_ca_file: Path | None
    body: int
    requests: int
    timeout: int
    lease: int
    keep: int
    metrics: tuple[Network, ...]
    configuration: Mapping[str, str]
    pages: Pages | None
    hours_minutes: int

    def order(self) -> dict[str, str]:
        """Tell what an attempt needs to know of the deployer.

        Returns:
            Entries of its order.
        """
        return {
            "pool": str(self.pool),
            "state": str(self.state),
            "password_file": str(self.password_file or ""),
        }


def read(path: Path) -> Settings:
    """Read a settings file.

    Args:
        path: the file, in YAML.

    Returns:
        The settings.

    Raises:
        BadInput: something is wrong; the sentence names its place.
    """
    return parsed(document.read(path).data, path)


def parsed(data: Mapping[str, Any], path: Path) -> Settings:
    """Check the content of a settings file.

    Args:
        data: its content.
        path: the file; relative names of files are beside it.

    Returns:
        The settings.

    Raises:
        BadInput: something is wrong; the sentence names its place.
    """
    beside = path.absolute().parent
    fields = Fields(data, str(path))
    folder = fields.path("folder", beside, "/var/lib/gpufarm-serve")
    url = fields.url("url").rstrip("/")
    issuers = _issuers(fields, beside)
    listen = fields.inner("listen")
    deployer, limits = fields.inner("deployer"), fields.inner("limits")
    callbacks, configuration = fields.inner("callbacks"), fields.inner("configuration")
    found = Settings(
        url=url,
        address=listen.text("address", "127.0.0.1"),
        port=listen.number("port", 8080, 1, 65535),
        folder=folder,
        database=fields.text("database", f"sqlite:///{folder}/serve.db"),
        state=deployer.path("state", beside),
        pool=deployer.path("pool", beside),
        password_file=deployer.file("vault_password_file", beside, secret=True),
        issuers=issuers,
        offers=_offers(fields.inner("templates"), beside, issuers),
        quotas=_quotas(fields.inner("quotas")),
        callback_hosts=_hosts(callbacks, "hosts"),
        callback_private=_hosts(callbacks, "private"),
        callback_ca_file=callbacks.file("ca_file", beside),
        body=limits.number("body_mib", 1, 1, 64) * _MIB,
        requests=limits.number("requests_per_minute", 120, 1, 100_000),
        timeout=limits.number("run_minutes", 1440, 1, 100_000),
        lease=limits.number("lease_seconds", 60, 10, 3600),
        keep=fields.number("keep_days", 0, 0, 36_500),
        metrics=_networks(listen),
        configuration={name: configuration.url(name) for name in CONFIGURATION if configuration.has(name)},
        pages=_pages(fields, beside, issuers),
        hours_minutes=fields.number("hours_minutes", 60, 0, 10_080),
    )
    for part in (listen, deployer, limits, callbacks, configuration, fields):
        part.done()
    _check_listen(found, path)
    unknown = found.callback_private - found.callback_hosts
    if unknown:
        raise BadInput(
            f"{path}: callbacks: private names {min(unknown)}, which is not in hosts; add it there"
        )
    return found


def _check_listen(found: Settings, path: Path) -> None:
    try:
        loopback = ipaddress.ip_address(found.address).is_loopback
    except ValueError as error:
        raise BadInput(f"{path}: listen: address is {found.address}; write an IP address") from error
    if not loopback:
        raise BadInput(
            f"{path}: listen: {found.address} is reached from outside, without TLS and deadlines; "
            "listen on 127.0.0.1 behind a proxy"
        )


def _issuers(fields: Fields, beside: Path) -> tuple[Issuer, ...]:
    found = []
    for entry in fields.maps("issuers"):
        if entry.has("directory"):
            found.append(_directory(entry, beside))
            continue
        one = Issuer(
            url=entry.url("issuer"),
            audience=entry.texts("audience"),
            administrators=entry.text("administrators", ""),
            groups_claim=entry.text("groups_claim", "groups"),
            algorithms=entry.texts("algorithms", Issuer.algorithms),
            opaque=entry.choice("opaque", OPAQUE, "refuse"),
            client_id=entry.text("client_id", ""),
            secret_file=entry.file("client_secret_file", beside, secret=True),
            ca_file=entry.file("ca_file", beside),
            login_claim=entry.text("login_claim", ""),
        )
        entry.done()
        for algorithm in one.algorithms:
            if algorithm not in ALGORITHMS:
                raise BadInput(
                    f"issuer {one.url}: algorithm {algorithm} is not accepted; use {', '.join(ALGORITHMS)}"
                )
        if one.opaque == "introspection" and not (one.client_id and one.secret_file):
            raise BadInput(f"issuer {one.url}: introspection needs client_id and client_secret_file")
        if one.opaque == "userinfo" and one.audience:
            raise BadInput(f"issuer {one.url}: userinfo tells no audience; use introspection or none")
        found.append(one)
    names = [one.url.rstrip("/") for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise BadInput(f"issuer {twice} is there twice; remove one entry")
    if sum(one.opaque != "refuse" for one in found) > 1:
        raise BadInput(
            "issuers: opaque tokens do not name their issuer, and none may see tokens of another; "
            "set opaque for one issuer only"
        )
    return tuple(found)


def _directory(entry: Fields, beside: Path) -> Issuer:
    url, inner = entry.directory("issuer"), entry.inner("directory")
    group = "(|(member={dn})(uniqueMember={dn})(memberUid={uid}))"
    found = Directory(
        servers=inner.texts("servers", (url,)),
        bind_dn=inner.text("bind_dn", ""),
        password_file=inner.file("bind_password_file", beside, secret=True),
        user_base=inner.text("user_base"),
        user_attribute=inner.text("user_attribute", "uid"),
        user_filter=inner.text("user_filter", ""),
        group_base=inner.text("group_base", ""),
        group_attribute=inner.text("group_attribute", "cn"),
        group_filter=inner.text("group_filter", group),
    )
    one = Issuer(
        url=url,
        administrators=entry.text("administrators", ""),
        ca_file=entry.file("ca_file", beside),
        login_claim=entry.text("login_claim", ""),
        directory=found,
    )
    for part in (inner, entry):
        part.done()
    for server in found.servers:
        if not ldap(server):
            raise BadInput(
                f"issuer {url}: servers has {server}; write ldaps://HOST, or ldap://HOST for StartTLS"
            )
    if bool(found.bind_dn) != bool(found.password_file):
        raise BadInput(f"issuer {url}: bind_dn and bind_password_file need each other; give both or none")
    for name in ("user_attribute", "group_attribute"):
        if not _ATTRIBUTE.fullmatch(getattr(found, name)):
            raise BadInput(f"issuer {url}: {name} is no name of an attribute; write one such as uid")
    for name in ("user_filter", "group_filter"):
        text = getattr(found, name)
        if text and not (text.startswith("(") and text.endswith(")")):
            raise BadInput(
                f"issuer {url}: {name} is no filter in parentheses; write one such as (objectClass=person)"
            )
    return one


def _pages(fields: Fields, beside: Path, issuers: tuple[Issuer, ...]) -> Pages | None:
    if not fields.has("pages"):
        return None
    entry = fields.inner("pages")
    named = entry.text("issuer")
    issuer = next((one for one in issuers if one.url.rstrip("/") == named.rstrip("/")), None)
    if issuer is None:
        raise BadInput(f"pages: issuer is {named}, which is no issuer; add it to issuers")
    if issuer.directory:
        entry.done()
        return Pages(issuer.url)
    client, secret = entry.text("client_id"), entry.file("client_secret_file", beside, secret=True)
    entry.done()
    if secret is None:
        raise BadInput("pages: client_secret_file is missing; name the file with the secret of the client")
    return Pages(issuer.url, client, secret)


def _offers(fields: Fields, beside: Path, issuers: tuple[Issuer, ...]) -> tuple[Offer, ...]:
    found = []
    known = {one.url.rstrip("/"): one.url for one in issuers}
    for name, value in fields.named():
        entry = Fields(value, f"template {name}")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", name):
            raise BadInput(f'template {name}: use letters, digits, ".", "_" and "-" in its name')
        written = entry.text("template", longest=4096)
        bare = "/" not in written and not Path(written).suffix
        people = dict(entry.inner("people").named())
        if not all(isinstance(claim, str) and claim for claim in people.values()):
            raise BadInput(f"template {name}: people has to be a map of names of inputs to names of claims")
        groups = frozenset(entry.texts("groups"))
        named = entry.texts("issuers")
        form, accounts = entry.file("form", beside), entry.switch("accounts")
        entry.done()
        for issuer in named:
            if issuer.rstrip("/") not in known:
                raise BadInput(
                    f"template {name}: issuers has {issuer}, which is no issuer; add it to issuers"
                )
        if (groups or people) and len(issuers) > 1 and not named:
            raise BadInput(
                f"template {name}: names of groups and claims mean something for one issuer only; "
                "add issuers, a list of those that you mean"
            )
        accepted = frozenset(known[issuer.rstrip("/")] for issuer in named)
        template = written if bare else str(beside / written)
        found.append(Offer(name, template, groups, people, accepted, form, accounts))
    if not found:
        raise BadInput("templates are missing; name at least one template that users may deploy")
    return tuple(found)


def _quotas(fields: Fields) -> Quotas:
    def quota(entry: Fields) -> Quota:
        found = Quota(entry.limit("deployments"), entry.limit("machines"))
        entry.done()
        return found

    user, group = quota(fields.inner("user")), quota(fields.inner("group"))
    named = fields.inner("groups").named()
    groups = {name: quota(Fields(value, f"quota of group {name}")) for name, value in named}
    fields.done()
    return Quotas(user, group, groups)


def _hosts(fields: Fields, name: str) -> frozenset[str]:
    found = fields.texts(name)
    for host in found:
        if not _HOST.fullmatch(host):
            raise BadInput(f"callbacks: {host} is no name of a host; write it without a scheme and a port")
    return frozenset(host.lower() for host in found)


def _networks(listen: Fields) -> tuple[Network, ...]:
    found = []
    for written in listen.texts("metrics_from", ("127.0.0.1", "::1")):
        try:
            found.append(ipaddress.ip_network(written))
        except ValueError as error:
            raise BadInput(f"listen: metrics_from has {written}; write an address or a network") from error
    return tuple(found)
