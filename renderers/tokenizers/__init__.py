"""What the framework asks of a tokenizer, and adapters for the kinds that users bring."""

from renderers.tokenizers.adapting import adapt
from renderers.tokenizers.protocol import TokenizerAdapter

__all__ = ["TokenizerAdapter", "adapt"]
