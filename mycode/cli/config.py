"""`mycode config` and `mycode trust`: look at settings, where they come from, and which folders may bring their own."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mycode.cli.options import RunOptions
from mycode.core.visible import plain

app = typer.Typer(
    help="Look at and change settings.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)


@app.command("show")
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each value came from.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show defaults, too.")] = False,
) -> int:
    """Show the settings in force as TOML."""
    from mycode.cli.run import Run
    from mycode.config.describe import settings_lines

    run = Run(RunOptions(), os.environ)
    for line in settings_lines(run.loaded, origin=origin, everything=everything):
        typer.echo(plain(line))
    for warning in run.warnings:
        typer.echo(plain(f"# {warning}"), err=True)
    return 0


@app.command("keys")
def keys() -> int:
    """List every setting with its default."""
    from mycode.config.describe import default_lines

    for line in default_lines():
        typer.echo(line)
    return 0


@app.command("path")
def path() -> int:
    """Print where your settings file is."""
    from mycode.config.folders import find_folders

    typer.echo(str(find_folders(os.environ).settings_file))
    return 0


@app.command("get")
def get_key(key: Annotated[str, typer.Argument(help="Dotted key, e.g. model.name.")]) -> int:
    """Print the value of one key that is in force.

    Example: mycode config get context.auto.trigger_ratio
    """
    from mycode.cli.run import Run
    from mycode.config.describe import toml
    from mycode.core.errors import ConfigError

    for known, value, _ in Run(RunOptions(), os.environ).loaded.values():
        if known == key:
            typer.echo(plain(toml(value)))
            return 0
    message = f"There is no setting {key!r}. `mycode config keys` lists them."
    raise ConfigError(message)


@app.command("set")
def set_key(
    key: Annotated[str, typer.Argument(help="Dotted key, e.g. model.name.")],
    value: Annotated[str, typer.Argument(help="A TOML literal, else plain text.")],
) -> int:
    """Set one key in your settings file; comments and order stay as they are.

    Example: mycode config set context.auto.trigger_ratio 0.7
    """
    from mycode.config.change import set_value
    from mycode.config.folders import find_folders

    file = set_value(find_folders(os.environ).settings_file, key, value)
    typer.echo(plain(f"{key} is set in {file}."))
    return 0


def trust(
    folder: Annotated[Path, typer.Argument(help="The project folder.")] = Path(),
    remove: Annotated[bool, typer.Option("--remove", help="Trust it no longer.")] = False,
) -> int:
    """Let a project's own settings count; a later change of them asks again."""
    from mycode.agent.environment import repository_root
    from mycode.config.folders import find_folders
    from mycode.config.trust import distrust
    from mycode.config.trust import trust as remember

    cwd = folder.resolve()
    root = repository_root(cwd) or cwd
    data = find_folders(os.environ).data
    (distrust if remove else remember)(data, root)
    typer.echo(plain(f"{root} is {'no longer' if remove else 'now'} trusted."))
    return 0
