"""Exact borders between chat messages and token IDs: render, parse, bridge.

>>> from renderers import create_renderer
>>> renderer = create_renderer("golden:qwen3")  # the small tokenizer that comes with the package, for golden texts
>>> prompt = renderer.render([{"role": "user", "content": "hi"}], add_generation_prompt=True)
>>> renderer.decode(prompt.token_ids)
'<|im_start|>user\\nhi<|im_end|>\\n<|im_start|>assistant\\n'
"""

from typing import TYPE_CHECKING

from renderers.lazy import lazy_exports
from renderers.version import __version__

if TYPE_CHECKING:
    from renderers.config import RendererConfig, Revision
    from renderers.default import DefaultRenderer
    from renderers.default_config import DefaultRendererConfig
    from renderers.delta import Bridge
    from renderers.delta_proof import Certificate, Premise
    from renderers.errors import (
        ConfigError,
        ConversationError,
        DamageError,
        EmptyMaskError,
        MessageError,
        MissingExtraError,
        NotOnPolicyError,
        PrefixError,
        RendererError,
        ResolutionError,
        TemplateError,
        TokenIdsError,
        TokenIdsTypeError,
        TokenizerError,
        TokenMismatchError,
        ToolsError,
        TrajectoryError,
        UnknownMaskError,
        UnsupportedMessageError,
        VendorError,
        VendorPayloadError,
        VendorReplyError,
        VendorStreamError,
    )
    from renderers.family import FamilyRenderer
    from renderers.labels import Owner, Run
    from renderers.ledger import Ledger
    from renderers.parsed import CallStatus, Delta, ParsedResponse, ParsedToolCall, Region, Span
    from renderers.refusal import BridgeRefusal, RefusalReason
    from renderers.registry import ResolutionWarning, create_renderer
    from renderers.rendered import Damage, RenderedTokens
    from renderers.renderer import DamageWarning, Renderer
    from renderers.retention import RetentionReport, retention_report
    from renderers.trajectory import MessageTree, Sample, Trajectory

__all__ = [
    "Bridge",
    "BridgeRefusal",
    "CallStatus",
    "Certificate",
    "ConfigError",
    "ConversationError",
    "Damage",
    "DamageError",
    "DamageWarning",
    "DefaultRenderer",
    "DefaultRendererConfig",
    "Delta",
    "EmptyMaskError",
    "FamilyRenderer",
    "Ledger",
    "MessageError",
    "MessageTree",
    "MissingExtraError",
    "NotOnPolicyError",
    "Owner",
    "ParsedResponse",
    "ParsedToolCall",
    "PrefixError",
    "Premise",
    "RefusalReason",
    "Region",
    "RenderedTokens",
    "Renderer",
    "RendererConfig",
    "RendererError",
    "ResolutionError",
    "ResolutionWarning",
    "RetentionReport",
    "Revision",
    "Run",
    "Sample",
    "Span",
    "TemplateError",
    "TokenIdsError",
    "TokenIdsTypeError",
    "TokenMismatchError",
    "TokenizerError",
    "ToolsError",
    "Trajectory",
    "TrajectoryError",
    "UnknownMaskError",
    "UnsupportedMessageError",
    "VendorError",
    "VendorPayloadError",
    "VendorReplyError",
    "VendorStreamError",
    "__version__",
    "create_renderer",
    "retention_report",
]

# Names are loaded when they are first asked for: pydantic and the encoders take most of the time of an import.
_MODULES = {
    "config": ("RendererConfig", "Revision"),
    "default": ("DefaultRenderer",),
    "default_config": ("DefaultRendererConfig",),
    "delta": ("Bridge",),
    "delta_proof": ("Certificate", "Premise"),
    "errors": (
        "ConfigError",
        "ConversationError",
        "DamageError",
        "EmptyMaskError",
        "MessageError",
        "MissingExtraError",
        "NotOnPolicyError",
        "PrefixError",
        "RendererError",
        "ResolutionError",
        "TemplateError",
        "TokenIdsError",
        "TokenIdsTypeError",
        "TokenMismatchError",
        "TokenizerError",
        "ToolsError",
        "TrajectoryError",
        "UnknownMaskError",
        "UnsupportedMessageError",
        "VendorError",
        "VendorPayloadError",
        "VendorReplyError",
        "VendorStreamError",
    ),
    "family": ("FamilyRenderer",),
    "labels": ("Owner", "Run"),
    "ledger": ("Ledger",),
    "parsed": ("CallStatus", "Delta", "ParsedResponse", "ParsedToolCall", "Region", "Span"),
    "refusal": ("BridgeRefusal", "RefusalReason"),
    "registry": ("ResolutionWarning", "create_renderer"),
    "rendered": ("Damage", "RenderedTokens"),
    "renderer": ("DamageWarning", "Renderer"),
    "retention": ("RetentionReport", "retention_report"),
    "trajectory": ("MessageTree", "Sample", "Trajectory"),
}
__getattr__ = lazy_exports(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
