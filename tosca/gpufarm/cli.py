# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `gpufarm`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from gpufarm import deployment_commands, show, template_commands
from gpufarm.api import Deployer
from gpufarm.deployment_commands import EVENTS
from gpufarm.errors import GpufarmError, Interrupted
from gpufarm.serve.commands import serve

# Words of other deployers (Terraform, Helm, xOpera) for commands of this one.
ALIASES = {"delete": "undeploy", "destroy": "undeploy", "list": "status", "ls": "status", "show": "status"}
# Commands that are about no deployment, also for those who always name a service.
LOCAL = ("validate", "package", "serve", "completion")


class _Command(click.Group):
    """A group whose failures are one sentence and an exit status, never a traceback."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise GpufarmError(f"{error.filename or 'the system'}: {error.strerror or error}") from error


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="gpufarm")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where deployments are remembered.  [default: GPUFARM_STATE_DIR or ~/.local/state/gpufarm]",
)
@click.option(
    "--vault-password-file",
    "password_file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GPUFARM_VAULT_PASSWORD_FILE",
    help="File with a vault password, or program that prints one; encrypts the key of the state.  "
    "[also: GPUFARM_VAULT_PASSWORD_FILE]",
)
@click.option(
    "--events",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File or pipe that gets a line of JSON for everything that happens in a run.",
)
@click.option(
    "--server",
    metavar="URL",
    envvar="GPUFARM_SERVER",
    help="A gpufarm serve, whose deployments of yours are meant.  [also: GPUFARM_SERVER]",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GPUFARM_TOKEN_FILE",
    help="File with an access token for the service, which nobody else can read.  [also: GPUFARM_TOKEN_FILE]",
)
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    envvar="GPUFARM_CA_FILE",
    help="Certificates (PEM) that the service's may come from.  [also: GPUFARM_CA_FILE]",
)
@click.pass_context
def main(
    context: click.Context,
    state_dir: Path | None,
    password_file: Path | None,
    events: Path | None,
    server: str | None,
    token_file: Path | None,
    ca_file: Path | None,
) -> None:
    """Set up GPU services from TOSCA templates on machines that you have.

    The machines are those of an Ansible inventory, the pool. For each machine that a template asks for, one
    of the pool is chosen that has what is asked for and that no other deployment holds.

    \b
    Look, then do, then ask where it is:
      gpufarm plan   tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm deploy tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm outputs ml_infn
    change it, look whether it is still as it was made, and who did what:
      gpufarm update  ml_infn --input jupyter_cpu_limit=4.0
      gpufarm diff    ml_infn
      gpufarm history ml_infn
    and take it away (also: delete, destroy; for status also: show, list, ls):
      gpufarm undeploy ml_infn

    \b
    The same at a service of somebody else, where the name of a deployment is its uuid:
      export GPUFARM_SERVER=https://paas.example.org GPUFARM_TOKEN_FILE=~/.token
      gpufarm deploy gpu_container --group physics --input docker_image=pytorch/pytorch
      gpufarm list

    \b
    Environment:
      GPUFARM_TOKEN      access token for a service, if there is no file with one
      GPUFARM_FILES_DIR  folder with the files that inputs may name; otherwise "files" in the state folder
      GPUFARM_LIBRARY    folders, with colons between them, from which templates may take types and playbooks
                         beside their own folder and the collection

    \b
    Exit status:
      0    done
      1    something failed on a machine, and the sentence says what and names the log; or a person said no
      2    the template, an input, the inventory or the command line is wrong; nothing was touched
      3    no free machine of the pool has what the template asks for; nothing was touched
      4    another run is changing this deployment
      5    `diff` has found differences; nothing was touched
      130  interrupted; the next run continues
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is as good as Ctrl-C
    folder = state_dir and state_dir.absolute()
    if server and context.invoked_subcommand not in LOCAL:
        from gpufarm.remote import Connection, Remote, Token

        context.obj = Remote(Connection(server, Token(token_file, os.environ), ca_file))
    else:
        context.obj = Deployer(folder, password_file and password_file.absolute(), show.warning)
    context.meta[EVENTS] = events


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what a shell needs to complete commands, options and files.

    \b
    Examples:
      gpufarm completion bash > ~/.local/share/bash-completion/completions/gpufarm
      gpufarm completion fish > ~/.config/fish/completions/gpufarm.fish
    """
    kind = get_completion_class(shell)
    assert kind, shell  # click has all three
    click.echo(kind(main, {}, "gpufarm", "_GPUFARM_COMPLETE").source())


for _command in (
    template_commands.validate,
    template_commands.package,
    deployment_commands.plan,
    deployment_commands.deploy,
    deployment_commands.update,
    deployment_commands.resume,
    deployment_commands.scale,
    deployment_commands.autoscale,
    deployment_commands.diff,
    deployment_commands.history,
    deployment_commands.status,
    deployment_commands.outputs,
    deployment_commands.log,
    deployment_commands.console,
    deployment_commands.undeploy,
    deployment_commands.report,
    deployment_commands.uniform,
    serve,
    completion,
):
    main.add_command(_command)
