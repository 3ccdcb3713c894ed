"""The version of this library, as it goes into fingerprints."""

__version__ = "0.1.0"
