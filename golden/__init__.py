"""Recorded conversations with their official tokens, and the recorder that makes them."""
