"""The `renderers` command. Needs the extra `cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; errors of this library become one line on standard error and exit code 2."""
    try:
        from renderers.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        from renderers.errors import MissingExtraError

        sys.exit(str(MissingExtraError("typer", "cli", "the `renderers` command")))
    app()
