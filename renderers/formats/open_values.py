"""Whether a value between plain tags is open: what a marker that comes now belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(slots=True)
class OpenValue:
    """Follows the tags of a call.

    A value ends at a closing tag that another tag of the call follows. It may quote tags: those that it opens it
    closes, and a closing tag with other text after it is its own.

    Attributes:
        tags: every tag of a call, as one group.
        opening: how the tag that opens a value begins.
        closing: the tag that closes it.
    """

    tags: re.Pattern[str]
    opening: str
    closing: str
    _depth: int = field(default=0, init=False)
    #: Since the last closing tag came only white space.
    _may_end: bool = field(default=False, init=False)

    def after(self, text: str) -> bool:
        """Whether a value is open after `text`, which goes on where the text of the last question ended."""
        for place, part in enumerate(self.tags.split(text)):
            is_tag, opens = place % 2, part.startswith(self.opening)
            if part == self.closing and self._depth == 1:
                self._may_end = True
            elif part == self.closing:
                self._depth = max(0, self._depth - 1)
            elif self._may_end and is_tag:
                self._depth, self._may_end = int(opens), False
            elif part.strip():
                self._may_end = False
                self._depth += is_tag and opens
        return self._depth > 0 and not self._may_end
