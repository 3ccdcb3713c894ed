"""Compares the speed of rendering, bridging and parsing, and writes the tables: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.peers import PACKAGES, Peers
from benchmarks.render import measure_render
from benchmarks.replies import measure_bridge, measure_parse
from benchmarks.report import number, table, times, write_into_pages
from benchmarks.subjects import SUBJECTS, Subject, is_known
from benchmarks.timing import Round, median, ratio
from benchmarks.whole import bytes_per_token, construction_seconds, import_seconds, renders_per_second
from renderers import DamageWarning, RendererError


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them into the pages unless told not to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    families = [one.family for one in SUBJECTS]
    parser.add_argument("--families", nargs="+", choices=families, default=families, help="only these families")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        help="another model, golden:NAME too, instead of the families; repeatable",
    )
    parser.add_argument("--rounds", type=_positive, default=9, help="rounds of each comparison")
    parser.add_argument("--messages", type=_positive, nargs="*", default=[2, 20, 200], help="lengths of conversations")
    parser.add_argument(
        "--histories", type=_positive, nargs="*", default=[1_000, 10_000, 100_000], help="tokens before a bridge"
    )
    parser.add_argument("--replies", type=_positive, nargs="*", default=[200, 4_000], help="tokens of a parsed reply")
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=[*PACKAGES],
        default=[*PACKAGES],
        help="libraries to compare with; none after the bare word",
    )
    parser.add_argument(
        "--processes", type=_positive, nargs="*", default=[1, 2], help="processes that share the throughput"
    )
    parser.add_argument(
        "--no-write", action="store_true", help="print the tables only; a part of them is never written"
    )
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore", DamageWarning)  # a template that prints no tools is measured without
    models = chosen.model or [one.model for one in SUBJECTS if one.family in chosen.families]
    _require_models(parser, models, chosen.model)
    is_whole = all(getattr(chosen, name) == parser.get_default(name) for name in vars(chosen) if name != "no_write")
    subjects = [Subject(model, model) for model in chosen.model] or [
        one for one in SUBJECTS if one.family in chosen.families
    ]
    renders, bridges, parses, short, missing = [], [], [], [], {}
    for subject in subjects:
        peers = Peers(subject, tuple(chosen.peers))
        for count in chosen.messages:
            measured, tokens = measure_render(
                subject, count, max(chosen.rounds, min(100, 40 * chosen.rounds // count)), peers
            )
            renders.append(_render_row(subject, count, measured, tokens))
        bridges += [
            _bridge_row(subject, *measure_bridge(subject, history, chosen.rounds, peers))
            for history in chosen.histories
        ]
        if chosen.messages and chosen.histories:  # the longest of each
            short.append(_short_row(renders[-1], bridges[-1]))
        parses += [
            _parse_row(subject, *measure_parse(subject, length, chosen.rounds, peers)) for length in chosen.replies
        ]
        peers.close()
        missing.update({f"{subject.family}, {what}": why for what, why in peers.missing.items()})
    whole = _whole_rows(subjects[0], chosen.rounds, chosen.processes)
    sections = {
        "benchmark in short": table(SHORT_HEADS, short),
        "benchmark of rendering": table(RENDER_HEADS, renders),
        "benchmark of bridging": table(BRIDGE_HEADS, bridges),
        "benchmark of parsing": table(PARSE_HEADS, parses),
        "benchmark of a process": table(("", ""), whole),
    }
    for name, text in sections.items():
        print(f"## {name}\n\n{text}\n")
        if is_whole and not chosen.no_write:
            write_into_pages(name, text)
    if not is_whole:
        print("a part of the comparisons; the pages are left as they are", file=sys.stderr)
    for what, why in missing.items():
        print(f"not measured: {what}: {why}", file=sys.stderr)


def _require_models(parser: argparse.ArgumentParser, models: Sequence[str], chosen: Sequence[str]) -> None:
    """End with a message where a model has no tokenizer, or one that was chosen by name no renderer."""
    if unknown := [model for model in models if not is_known(model)]:
        parser.error(
            f"there is no tokenizer for {', '.join(unknown)}; give --model golden:NAME, or a model of the assets, whose folder "
            "RENDERERS_ASSETS names"
        )
    for model in chosen:
        try:
            Subject(model, model).new_renderer()
        except RendererError as error:
            parser.error(f"there is no renderer for {model}: {error}")


SHORT_HEADS = (
    "family", "tokens", "render", "than `apply_chat_template`", "than `renderers` 0.1.12", "than `tml-renderers`", "again", "one more turn", "bridge",
)  # fmt: skip
RENDER_HEADS = (
    "family", "messages", "tokens", "cold", "masks on top", "of bare tiktoken", "than `apply_chat_template`",
    "than `renderers` 0.1.12", "than `tml-renderers`", "than openai-harmony", "again", "one more turn",
)  # fmt: skip
BRIDGE_HEADS = (
    "family", "history", "from the previous result", "of which encoding", "completion not parsed before", "from lists", "`renderers` 0.1.12 from lists",
    "from lists, than it",
)  # fmt: skip
PARSE_HEADS = (
    "family", "tokens", "parse", "of one decode", "than `renderers` 0.1.12", "streaming, a token on top of decode",
)  # fmt: skip


def _render_row(subject: Subject, count: int, rounds: Sequence[Round], tokens: int) -> tuple[str, ...]:
    return (
        subject.family,
        str(count),
        str(tokens),
        number(median(rounds, "cold"), " ms"),
        number(median(rounds, "masks"), " ms"),
        times(ratio(rounds, "cold", "tiktoken")),
        times(ratio(rounds, "template", "cold")),
        times(ratio(rounds, "renderers", "cold")),
        times(ratio(rounds, "tml", "cold")),
        times(ratio(rounds, "harmony", "cold")),
        times(ratio(rounds, "template", "again")),
        times(ratio(rounds, "template turn", "turn")),
    )


def _short_row(render: Sequence[str], bridge: Sequence[str]) -> tuple[str, ...]:
    """What the README shows of a family's rows."""
    shown = dict(zip(RENDER_HEADS, render, strict=True)) | {"render": render[RENDER_HEADS.index("cold")]}
    shown["bridge"] = bridge[BRIDGE_HEADS.index("from the previous result")]
    return tuple(shown[head] for head in SHORT_HEADS)


def _bridge_row(subject: Subject, rounds: Sequence[Round], history: int) -> tuple[str, ...]:
    return (
        subject.family,
        str(history),
        number(median(rounds, "result"), " ms"),
        number(median(rounds, "encode"), " ms"),
        number(median(rounds, "unread"), " ms"),
        number(median(rounds, "lists"), " ms"),
        number(median(rounds, "renderers"), " ms"),
        times(ratio(rounds, "renderers", "lists")),
    )


def _parse_row(subject: Subject, rounds: Sequence[Round], length: int) -> tuple[str, ...]:
    on_top = [1e6 * (one["stream"] - one["decode each"]) / length for one in rounds]
    return (
        subject.family,
        str(length),
        number(median(rounds, "parse"), " ms"),
        times(ratio(rounds, "parse", "decode")),
        times(ratio(rounds, "renderers", "parse")),
        number(max(0.0, statistics.median(on_top)), " µs"),
    )


def _positive(text: str) -> int:
    """A number above 0, for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def _whole_rows(subject: Subject, rounds: int, processes: Sequence[int]) -> list[tuple[str, str]]:
    versions = ", ".join(f"{name} {version(name)}" for name in ("tokenizers", "tiktoken", "transformers"))
    return [
        ("family", subject.family),
        ("`import renderers`", number(1000 * import_seconds("renderers", rounds), " ms")),
        ("a renderer for a loaded tokenizer", number(1000 * construction_seconds(subject, rounds), " ms")),
        ("memory beside the token IDs of 200 messages, a token", number(bytes_per_token(subject, 200), " bytes")),
        *[
            (
                f"new conversations of 20 messages, {shared} process{'es' * (shared > 1)}",
                number(renders_per_second(subject, shared, 20, 40 * rounds), " a second"),
            )
            for shared in processes
        ],
        ("measured with", f"Python {platform.python_version()}, {versions}"),
    ]


if __name__ == "__main__":
    main()
