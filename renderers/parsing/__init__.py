"""Parsing sampled replies, token by token. See `renderers.parsing.protocol` for how it is built and extended."""

from renderers.parsing.grammar import BoundReplyGrammar, Reasoning, ReplyGrammar
from renderers.parsing.markers import Found, Identity, Marker, MarkerTable
from renderers.parsing.protocol import (
    BlockFactory,
    BlockReader,
    BoundGrammar,
    BoundToolCalls,
    CallProgress,
    Frame,
    Grammar,
    ReadCall,
    ReplyStream,
    ToolCallFormat,
    Tools,
)
from renderers.parsing.stream import TokenStream

__all__ = [
    "BlockFactory",
    "BlockReader",
    "BoundGrammar",
    "BoundReplyGrammar",
    "BoundToolCalls",
    "CallProgress",
    "Found",
    "Frame",
    "Grammar",
    "Identity",
    "Marker",
    "MarkerTable",
    "ReadCall",
    "Reasoning",
    "ReplyGrammar",
    "ReplyStream",
    "TokenStream",
    "ToolCallFormat",
    "Tools",
]
