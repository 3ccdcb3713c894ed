"""Small chat templates of our own that keep or break their prefix, each in one way; and the ways of official ones."""

from __future__ import annotations

#: ChatML with calls as JSON. What stands for `OPEN` is printed between a reply's header and its content.
_CHATML = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last_user=-1) %}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {%- set ns.last_user = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        OPEN
        {{- m.content or '' }}
        {%- for call in m.tool_calls or [] %}
            {%- set given = call.function.arguments %}
            {{- '<tool_call>' + call.function.name + ' ' + (ARGUMENTS) + '</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif m.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>' + m.content + '</tool_response><|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
_THINK = "{{- '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}"


#: How the calls' arguments are printed.
ARGUMENTS = "given if given is string else given | tojson"


def chatml(opening: str = "") -> str:
    """The template with something between header and content."""
    return _CHATML.replace("OPEN", opening).replace("ARGUMENTS", ARGUMENTS)


#: Keeps everything.
KEEPING = chatml(f"{{%- if m.reasoning_content %}}{_THINK}{{%- endif %}}")
#: A think block in the last turn only.
BY_POSITION = chatml(f"{{%- if loop.last or m.reasoning_content and true %}}{_THINK}{{%- endif %}}")
#: Reasoning since the last user message only.
BY_QUERY = chatml(f"{{%- if loop.index0 > ns.last_user and m.reasoning_content %}}{_THINK}{{%- endif %}}")
#: No calls.
LOSING = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
#: Calls only beside null content, and arguments as text.
NULL_ONLY = (
    "{% for m in messages %}{{ m.role }}: {% if m.content is none %}{% for c in m.tool_calls %}{{ c.function.name + "
    "c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}"
)
#: No tools at all.
REFUSING = "{% for m in messages %}{% if m.tool_calls %}{{ raise_exception('No tools here.') }}{% endif %}{{ m.content }}{% endfor %}"
