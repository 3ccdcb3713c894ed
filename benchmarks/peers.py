"""Environments of their own for the libraries that are compared, and the processes that run in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.subjects import Subject

#: Where the environments are made; git ignores it.
FOLDER = Path(__file__).resolve().parents[1] / ".venv-bench"
#: What each environment holds. `renderers` does not declare httpx, which it imports; `tml-renderers` needs PyTorch.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "renderers": ("renderers==0.1.12", "transformers", "httpx"),
    "tml": ("tml-renderers", "torch>=2.10"),
}
#: What each is asked for.
OPERATIONS: Mapping[str, tuple[str, ...]] = {"renderers": ("render", "bridge", "parse"), "tml": ("render",)}
TITLES: Mapping[str, str] = {"renderers": "`renderers` 0.1.12", "tml": "`tml-renderers`"}


class PeerError(Exception):
    """A library cannot be compared; the message says why."""


def environment(name: str) -> Path:
    """The interpreter of a library's environment, which is made where it is not there.

    Raises:
        PeerError: pip cannot get the packages.
    """
    folder = FOLDER / name
    python = folder / "bin" / "python"
    done = folder / ".complete"
    if not done.is_file():
        print(f"making an environment for {', '.join(PACKAGES[name])} ...", file=sys.stderr)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]]
            subprocess.run(install, check=True, capture_output=True, timeout=1800)
        except (subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "stderr", b"") or b""
            lines = said.decode("utf-8", "replace").strip().splitlines() or [str(error)]
            raise PeerError(f"pip cannot install {' '.join(PACKAGES[name])}: {lines[-1]}") from None
        done.touch()
    return python


class Peer:
    """A library at work in its own process, with one family's tokenizer.

    Raises:
        PeerError: it cannot be installed or loaded, or does not know the family.
    """

    def __init__(self, name: str, subject: Subject) -> None:
        self.name = name
        self._process = subprocess.Popen(
            # Isolated: a PYTHONPATH that leads to this package would have it compared with itself.
            [str(environment(name)), "-I", str(Path(__file__).with_name("peer.py")), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **subject.environment},
        )
        self.ask("load", folder=str(subject.folder), model=subject.model, template=subject.template, tml=subject.tml)

    def ask(self, operation: str, **arguments: Any) -> tuple[float, int]:
        """The processor seconds that an operation took there, and the number of tokens that it gave.

        Raises:
            PeerError: the library raised an error.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"op": operation, **arguments}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline() or '{"error": "its process ended"}')
        except BrokenPipeError:
            answer = {"error": "its process ended"}
        if "error" in answer:
            raise PeerError(f"{TITLES[self.name]}: {answer['error']}")
        return answer.get("seconds", 0.0), answer.get("tokens", 0)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Peers:
    """The libraries that could be loaded for a family, and why the others could not."""

    def __init__(self, subject: Subject, names: tuple[str, ...] = tuple(PACKAGES)) -> None:
        self.loaded: dict[str, Peer] = {}
        self.missing: dict[str, str] = {}
        for name in names:
            try:
                self.loaded[name] = Peer(name, subject)
            except PeerError as error:
                self.missing[name] = str(error)

    def measured(self, operation: str, **arguments: Any) -> dict[str, float]:
        """What each library took for an operation; it is not asked again for one that it cannot do."""
        taken: dict[str, float] = {}
        for name, peer in self.loaded.items():
            failed = f"{name}, {operation}"
            if operation not in OPERATIONS[name] or failed in self.missing:
                continue
            try:
                taken[name], _ = peer.ask(operation, **arguments)
            except PeerError as error:
                self.missing[failed] = str(error)
        return taken

    def close(self) -> None:
        """End their processes."""
        for peer in self.loaded.values():
            peer.close()
