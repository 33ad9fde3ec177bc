# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``gpufarm serve``. Its libraries are loaded when it is used, as they are an extra."""

from __future__ import annotations

import importlib.util
import logging
import signal
import sys
from pathlib import Path

import click

from gpufarm.errors import GpufarmError


@click.group(invoke_without_command=True)
@click.option(
    "--settings",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GPUFARM_SERVE_SETTINGS",
    required=True,
    help="YAML file with the settings.  [also: GPUFARM_SERVE_SETTINGS]",
)
@click.pass_context
def serve(context: click.Context, path: Path) -> None:
    """Offer templates to users, over the REST interface of INDIGO's PaaS Orchestrator.

    The PaaS dashboard and the command orchent use this interface. Users sign in with access tokens of an
    OpenID Connect provider, may deploy the templates of your catalogue, and see only their own deployments.
    The server takes requests; a worker carries them out. Run at least one of each; several workers share the
    queue.

    \b
    Examples:
      gpufarm serve --settings /etc/gpufarm/serve.yml            # the server, until a signal ends it
      gpufarm serve --settings /etc/gpufarm/serve.yml check      # only read settings, ask issuers
      gpufarm serve --settings /etc/gpufarm/serve.yml worker     # a worker

    \b
    The smallest settings, for a proxy with TLS in front of 127.0.0.1:8080:
      url: https://paas.example.org
      deployer: {state: /srv/gpufarm, pool: /etc/gpufarm/pool.yml}
      issuers:
        - issuer: https://iam.example.org/
          audience: [gpufarm]
      templates:
        notebooks: {template: ml_infn, groups: [physics]}

    docs/serve.md describes all settings. The libraries are an extra: pip install "gpufarm[serve]".
    """
    if importlib.util.find_spec("fastapi") is None:
        raise GpufarmError('gpufarm serve needs libraries; install them with: pip install "gpufarm[serve]"')
    from gpufarm.serve import settings

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write each URL
    context.obj = settings.read(path)
    if context.invoked_subcommand is None:
        from gpufarm.serve import server

        server.run(context.obj)


@serve.command()
@click.pass_context
def check(context: click.Context) -> None:
    """Read settings, templates and database, ask each issuer, and say what is wrong; nothing is touched.

    The exit status is 1 if an issuer does not answer as the settings say.
    """
    from gpufarm.serve.database import Database
    from gpufarm.serve.directory import Directory
    from gpufarm.serve.offers import Offers
    from gpufarm.serve.provider import Provider
    from gpufarm.serve.refusals import NoAnswer
    from gpufarm.serve.settings import Settings
    from gpufarm.serve.web import form

    found = context.obj
    assert isinstance(found, Settings)
    for one in Offers(found.offers).all():
        form.read(one)
    names = ", ".join(offer.name for offer in found.offers)
    old = Database(found.database).outdated()
    click.echo(f"the settings are in order; users may deploy: {names}")
    if old:
        click.echo(f"the tables of the database will be changed; they are of version {old}")
    problems = []
    for issuer in found.issuers:
        try:
            (Directory(issuer) if issuer.directory else Provider(issuer)).check()
        except NoAnswer as error:
            problems.append(str(error))
        else:
            click.echo(f"{issuer.url} answers")
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        context.exit(1)


@serve.command()
@click.pass_obj
def upgrade(found: object) -> None:
    """Bring the tables of the database up to date.

    With SQLite, server and workers do that when they start, and leave a copy of the former file beside it.
    Make a backup of PostgreSQL first, such as with pg_dump, and stop server and workers.
    """
    from gpufarm.serve.database import Database
    from gpufarm.serve.settings import Settings

    assert isinstance(found, Settings)
    Database(found.database).upgrade(backed_up=True)
    click.echo("the tables of the database are up to date")


@serve.command()
@click.pass_obj
def worker(found: object) -> None:
    """Carry out what users request, one run at a time, until a signal ends it.

    A run that is under way then goes back to the queue, and the next worker continues it. After SIGHUP the
    worker ends when the run that is under way is over.
    """
    from gpufarm.serve.service import Service
    from gpufarm.serve.settings import Settings
    from gpufarm.serve.worker import Worker

    assert isinstance(found, Settings)
    made = Worker(Service(found))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_what: made.stop())
    signal.signal(signal.SIGHUP, lambda *_what: made.drain())
    made.run()
