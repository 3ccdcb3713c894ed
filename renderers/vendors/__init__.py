"""Vendor APIs that speak only messages: their payloads to the canonical messages, and back, without loss.

>>> from renderers.vendors import ANTHROPIC
>>> reply = ANTHROPIC.read_reply(
...     {"role": "assistant", "content": [{"type": "text", "text": "4"}], "stop_reason": "end_turn"}
... )
>>> reply.message
{'role': 'assistant', 'content': '4'}
>>> request = ANTHROPIC.write_request([{"role": "user", "content": "2+2?"}, reply.message], settings={"max_tokens": 9})
>>> request.payload["messages"][1]
{'role': 'assistant', 'content': [{'type': 'text', 'text': '4'}]}
>>> request.differences
()
"""

from renderers.vendors.anthropic import Anthropic
from renderers.vendors.api import Conversation, Reply, VendorApi, Written
from renderers.vendors.approximations import Approximated, approximations
from renderers.vendors.call_ids import ToolCallIds
from renderers.vendors.chat_completions import ChatCompletions
from renderers.vendors.differences import MISSING, Difference, restore
from renderers.vendors.events import ReplyStream
from renderers.vendors.gemini import UNSIGNED, Gemini
from renderers.vendors.responses import Responses

#: The four APIs with their usual settings.
ANTHROPIC = Anthropic()
CHAT_COMPLETIONS = ChatCompletions()
GEMINI = Gemini()
RESPONSES = Responses()

__all__ = [
    "ANTHROPIC",
    "CHAT_COMPLETIONS",
    "GEMINI",
    "MISSING",
    "RESPONSES",
    "UNSIGNED",
    "Anthropic",
    "Approximated",
    "ChatCompletions",
    "Conversation",
    "Difference",
    "Gemini",
    "Reply",
    "ReplyStream",
    "Responses",
    "ToolCallIds",
    "VendorApi",
    "Written",
    "approximations",
    "restore",
]
