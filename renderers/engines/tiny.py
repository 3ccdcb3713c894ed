"""A model of random weights, small enough for a test: it decides like a model, and knows nothing."""

from __future__ import annotations

from typing import Any

from renderers.optional import load_optional


def tiny_random_model(vocabulary_size: int, *, seed: int = 0, max_context: int = 8192) -> Any:
    """A causal language model of transformers: two layers, float32, random weights, some megabytes.

    Its weights are wide enough that every token of the context moves the probabilities of the next: a test that
    compares log-probabilities notices one changed token.

    Args:
        vocabulary_size: one more than the largest token ID, `renderer.tokenizer.vocabulary_size`.
        seed: of the weights.
        max_context: its `max_position_embeddings`.

    Raises:
        MissingExtraError: torch or transformers is not installed.
    """
    torch = load_optional("torch", "local", "a tiny random model")
    transformers = load_optional("transformers", "local", "a tiny random model")
    config = transformers.Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=max_context,
        initializer_range=0.4,
        tie_word_embeddings=True,
        # The default config's token IDs mean nothing in this vocabulary.
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.Qwen3ForCausalLM(config).eval()
