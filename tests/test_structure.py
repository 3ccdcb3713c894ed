"""The shape of the package: light imports, one curated surface, dependencies that point one way, files of a size."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import renderers

REPOSITORY = Path(__file__).resolve().parent.parent
#: Inside the framework, who may import whom: a module may import modules of its own layer and of lower ones.
LAYERS = (
    ("renderers.errors", "renderers.optional", "renderers.lazy", "renderers.version", "renderers.parsed", "renderers.cache", "renderers.labels", "renderers.refusal"),
    ("renderers.tokenizers", "renderers.token_ids", "renderers.messages", "renderers.config", "renderers.default_config"),
    (
        "renderers.conversation", "renderers.rendered", "renderers.writer", "renderers.assembly", "renderers.encoding", "renderers.placing", "renderers.opening",
        "renderers.parsing", "renderers.formats", "renderers.template",
    ),
    ("renderers.renderer", "renderers.family", "renderers.role_tokens", "renderers.chatml_turns", "renderers.dsml_turns", "renderers.bridging", "renderers.scribe", "renderers.reading", "renderers.shapes", "renderers.delta_proof", "renderers.delta", "renderers.default"),
    ("renderers.registry",),
    ("renderers.trajectory", "renderers.engines", "renderers.batch", "renderers.vendors"),
    ("renderers.retention", "renderers.ledger"),
    ("renderers.testing", "renderers.cli", "renderers.__main__"),
)  # fmt: skip


def _modules(package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def _imports(path: Path) -> set[str]:
    """What a module imports when it is loaded or run; imports for type checking only do not count."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _layer(module: str) -> int | None:
    for place, layer in enumerate(LAYERS):
        if any(module == name or module.startswith(name + ".") for name in layer):
            return place
    return None


def test_the_framework_knows_no_family() -> None:
    for name, path in _modules("renderers"):
        assert not {one for one in _imports(path) if one.split(".")[0] in {"families", "golden"}}, name


def test_families_know_only_the_framework() -> None:
    for name, path in _modules("families"):
        others = {one for one in _imports(path) if one.split(".")[0] in {"families", "golden", "tests"}}
        assert not others, f"{name} imports {others}"


def test_nothing_imports_the_tests() -> None:
    of_tests = {path.stem for path in (REPOSITORY / "tests").rglob("*.py")} - {"conftest"}
    for package in ("renderers", "families", "golden", "benchmarks"):
        for name, path in _modules(package):
            assert not of_tests & {one.split(".")[0] for one in _imports(path)}, name


def test_every_module_has_a_layer() -> None:
    for name, _ in _modules("renderers"):
        assert name == "renderers" or _layer(name) is not None, name


def test_layers_import_downwards() -> None:
    for name, path in _modules("renderers"):
        own = _layer(name)
        if own is None:
            continue
        for imported in _imports(path):
            other = _layer(imported)
            assert other is None or other <= own, f"{name} imports {imported}"


def test_exported_names_exist_and_are_public() -> None:
    for name in renderers.__all__:
        assert getattr(renderers, name) is not None
        assert name == "__version__" or not name.startswith("_")
    assert sorted(renderers.__all__) == renderers.__all__
    assert dir(renderers) == renderers.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = renderers.nothing


def test_public_classes_and_functions_are_documented() -> None:
    for name in renderers.__all__:
        if name != "__version__":
            assert (getattr(renderers, name).__doc__ or "").strip(), name


def test_import_is_light() -> None:
    heavy = {"transformers", "torch", "httpx", "requests", "huggingface_hub", "numpy", "rich", "typer", "hypothesis"}
    code = "import sys, renderers; print(' '.join(sorted(set(sys.modules))))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & {module.split(".")[0] for module in loaded}


def test_rendering_loads_no_heavy_library() -> None:
    code = (
        "import sys; from renderers import create_renderer; "
        "create_renderer('golden:qwen3').render([{'role': 'user', 'content': 'hi'}]); "
        "print(' '.join(sorted(set(sys.modules))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"transformers", "torch", "httpx", "rich", "typer"} & {module.split(".")[0] for module in loaded}


def test_import_time() -> None:
    """Under 150 ms; the best of five, because what else the machine does only adds."""
    code = "import time; start = time.perf_counter(); import renderers; print(time.perf_counter() - start)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.150


def test_files_are_short() -> None:
    for package in ("renderers", "families", "golden", "tests", "benchmarks"):
        for _, path in _modules(package):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            limit = 300 if package == "families" else 500
            assert lines <= limit, f"{path.relative_to(REPOSITORY)} has {lines} lines"
