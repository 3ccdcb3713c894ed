"""What the framework asks of a tokenizer, and adapters for the kinds that users bring."""
