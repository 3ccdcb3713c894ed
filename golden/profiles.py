"""What each model's official template takes: profiles by model ID, read off the templates themselves."""

from __future__ import annotations

from dataclasses import replace

from renderers.testing import Profile

_BOOLEAN = (True, False)

QWEN3 = Profile(
    name="Qwen3",
    markers=(
        "<|im_end|>", "</think>", "<think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
        "<|im_start|>", "<|endoftext|>", "<|im_end|>\n<|im_start|>system\n", "<think>\n\n</think>\n\n",
    ),
    empty_content=("system",),
    switches=(("enable_thinking", _BOOLEAN),),
    thinking_off=("enable_thinking", False),
    positional=("<think>\n\n</think>\n\n",),
)  # fmt: skip
QWEN3_2025_04 = replace(
    QWEN3, name="Qwen3, April 2025", empty_content=("system", "user", "assistant", "tool", "developer")
)
QWEN3_INSTRUCT = replace(QWEN3, name="Qwen3-Instruct-2507", switches=(), reasoning=False, positional=())
QWEN3_THINKING = replace(QWEN3, name="Qwen3-Thinking-2507", switches=(), opens_reasoning=True)

_XML_MARKERS = ("<function=f>", "</function>", "<parameter=x>", "</parameter>", "\n</parameter>\n")

# A first system message without content is no system message to these templates; a later one makes them crash.
QWEN3_CODER = replace(
    QWEN3,
    name="Qwen3-Coder",
    markers=QWEN3.markers + _XML_MARKERS,
    reasoning=False,
    switches=(),
    empty_content=("late_system", "user", "assistant", "developer"),
    arguments="parsed",
    typed_arguments=False,
    optional_parameters=False,
    positional=(),
)
QWEN3_CODER_OLDER = replace(QWEN3_CODER, name="Qwen3-Coder, older revision", optional_parameters=True)

QWEN35 = replace(
    QWEN3,
    name="Qwen3.5",
    markers=QWEN3.markers + _XML_MARKERS,
    roles=("system", "user", "assistant", "tool"),
    late_system=False,
    needs_user_query=True,
    parts=("system", "user", "assistant", "tool"),
    empty_content=(),
    arguments="parsed",
    typed_arguments=False,
    opens_reasoning=True,
)
QWEN36 = replace(QWEN35, name="Qwen3.6", switches=(*QWEN35.switches, ("preserve_thinking", _BOOLEAN)))
QWEN38 = replace(QWEN36, name="Qwen3.8", switches=(*QWEN36.switches, ("reasoning_effort", ("xhigh", "medium", "low"))))

GLM45 = Profile(
    name="GLM-4.5",
    markers=(
        "<|user|>", "<|assistant|>", "<|observation|>", "<|system|>", "</think>", "<think>", "<tool_call>",
        "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "\n<arg_value>", "/nothink",
        "<tool_response>", "</tool_response>", "[gMASK]<sop>", "<|endoftext|>",
    ),
    parts=("system", "user", "assistant"),  # a list of text parts in a tool message is printed as Python shows it
    arguments="parsed",
    typed_arguments=False,
    switches=(("enable_thinking", _BOOLEAN),),
    thinking_off=("enable_thinking", False),
    turn_end="<|endoftext|>",
    role_stops=(
        ("user", "<|user|>"), ("tool", "<|observation|>"), ("system", "<|system|>"), ("assistant", "<|assistant|>"),
    ),
    dropped_roles=("developer",),
)  # fmt: skip
GLM5 = replace(
    GLM45,
    name="GLM-5",
    opens_reasoning=True,
    switches=(*GLM45.switches, ("clear_thinking", _BOOLEAN)),
    positional=("<think></think>", "</think>"),
)
GLM51 = replace(GLM5, name="GLM-5.1", parts=("system", "user", "assistant", "tool"))
GLM52 = replace(GLM51, name="GLM-5.2", switches=(*GLM51.switches, ("reasoning_effort", ("high", "max"))), positional=())

DEEPSEEK_V3 = Profile(
    name="DeepSeek-V3",
    markers=(
        "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "</think>", "<think>", "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜tool▁outputs▁begin｜>",
        "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "<｜tool▁outputs▁end｜>", "<｜begin▁of▁sentence｜>", "```json\n",
    ),
    hoists_systems=True,
    reasoning=False,
    null_content=True,
    null_content_beside_calls=True,
    most_calls_in_reply=2,
    arguments="text",
    optional_content=("assistant",),
    optional_call_type=False,
    turn_end="<｜end▁of▁sentence｜>",
)  # fmt: skip
DEEPSEEK_R1 = replace(
    DEEPSEEK_V3,
    name="DeepSeek-R1",
    reasoning=True,
    opens_reasoning=True,
    optional_content=(),
    null_content_beside_calls=False,
    most_calls_in_reply=3,
)
DEEPSEEK_V31 = replace(
    DEEPSEEK_R1,
    name="DeepSeek-V3.1",
    opens_reasoning=False,
    optional_call_type=True,
    switches=(("thinking", _BOOLEAN),),
    thinking_off=("thinking", None),
)

_DSML = (
    "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "</think>", "<think>", "｜DSML｜", '<｜DSML｜invoke name="f">',
    "</｜DSML｜invoke>", '<｜DSML｜parameter name="x" string="true">', "</｜DSML｜parameter>", "<result>", "</result>",
)  # fmt: skip
DEEPSEEK_V32 = Profile(
    name="DeepSeek-V3.2",
    markers=(*_DSML, "<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "<function_results>"),
    needs_call_before_result=True,
    arguments="parsed",
    switches=(("thinking_mode", ("thinking",)), ("drop_thinking", _BOOLEAN)),
    opens_reasoning=True,
    thinking_off=("thinking_mode", None),
    turn_end="<｜end▁of▁sentence｜>",
    positional=("<think>",),
)
DEEPSEEK_V4 = replace(
    DEEPSEEK_V32,
    name="DeepSeek-V4",
    markers=(*_DSML, "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "<tool_result>", "</tool_result>"),
    needs_call_before_result=False,
    parts=("tool",),
    arguments="text",
    switches=(*DEEPSEEK_V32.switches, ("reasoning_effort", ("high", "max"))),
)

KIMI_K2 = Profile(
    name="Kimi-K2-Instruct",
    markers=(
        "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "</think>", "<think>",
        "<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>",
        "<|tool_calls_section_end|>", "[EOS]", "<|tool_call_section_begin|>", "## Return of functions.f:0\n",
    ),
    call_ids="kimi",
    parts=("system", "user", "assistant", "tool", "developer"),
    reasoning=False,
)  # fmt: skip
KIMI_K2_THINKING = replace(KIMI_K2, name="Kimi-K2-Thinking", reasoning=True)
KIMI_K25 = replace(
    KIMI_K2_THINKING,
    name="Kimi-K2.5",
    switches=(("thinking", _BOOLEAN),),
    opens_reasoning=True,
    thinking_off=("thinking", False),
)
KIMI_K26 = replace(
    KIMI_K25,
    name="Kimi-K2.6",
    switches=(*KIMI_K25.switches, ("preserve_thinking", _BOOLEAN)),
    reasoning_names=("reasoning", "reasoning_content", "thinking"),
)

GPT_OSS_TEMPLATE = Profile(
    name="gpt-oss, template",
    markers=(
        "<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "analysis",
        "<|start|>assistant", "to=functions.f", "<|endoftext|>",
    ),
    needs_call_before_result=True,
    most_calls_in_reply=1,
    empty_content=("user", "assistant", "tool"),
    content_beside_reasoning_and_calls=False,
    empty_tool_calls=False,
    arguments="parsed",
    optional_description=False,
    any_schema=False,
    switches=(("reasoning_effort", ("low", "medium", "high")),),
    fixed_switches=(("conversation_start_date", "2025-06-28"),),
    turn_end="<|end|>",
    positional=("<|channel|>analysis<|message|><|end|><|start|>assistant", "<|return|>", "<|end|>"),
)  # fmt: skip
GPT_OSS_HARMONY = replace(
    GPT_OSS_TEMPLATE,
    name="gpt-oss, Harmony",
    content_beside_reasoning_and_calls=True,
    arguments="any",
    empty_tool_calls=True,
    optional_description=True,
    any_schema=True,
    switches=(
        *GPT_OSS_TEMPLATE.switches,
        ("conversation_start_date", ("2025-06-28",)),
        ("drop_analysis", ("before_first_final", "never")),
        ("model_identity", ("You are M.",)),
        ("builtin_tools", (("browser",), ("python", "browser"))),
    ),
    fixed_switches=(),
)

LLAMA3 = Profile(
    name="Llama-3.x",
    markers=("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|begin_of_text|>"),
    reasoning=False,
    parallel_calls=False,
    empty_tool_calls=False,
    empty_content=("tool",),
    arguments="parsed",
    tools_need_system_or_user_first=True,
    switches=(("tools_in_user_message", _BOOLEAN),),
    fixed_switches=(("date_string", "26 Jul 2024"),),
    turn_end="<|eot_id|>",
)

MINIMAX_M2 = Profile(
    name="MiniMax-M2",
    markers=(
        "[e~[", "]~b]", "]~!b[", "</think>", "<think>", "<minimax:tool_call>", "</minimax:tool_call>",
        '<invoke name="f">', "</invoke>", '<parameter name="x">', "</parameter>", "]~b]user\n",
    ),
    needs_call_before_result=True,
    parts=("system", "user", "assistant", "tool"),
    arguments="parsed",
    typed_arguments=False,
    switches=(("model_identity", ("You are M.",)),),
    turn_end="[e~[",
)  # fmt: skip

#: Profiles by model ID of `models.json`. Where a model's template could not be verified it is the same as its sibling's.
PROFILES: dict[str, Profile] = {
    "Qwen/Qwen3-8B": QWEN3,
    "Qwen/Qwen3-8B@2025-04": QWEN3_2025_04,
    "Qwen/Qwen3-4B-Instruct-2507": QWEN3_INSTRUCT,
    "Qwen/Qwen3-4B-Thinking-2507": QWEN3_THINKING,
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": QWEN3_CODER,
    "Qwen/Qwen3-Coder-30B-A3B-Instruct@older": QWEN3_CODER_OLDER,
    "Qwen/Qwen3.5-35B-A3B": QWEN35,
    "Qwen/Qwen3.6-35B-A3B": QWEN36,
    "Qwen/Qwen3.8": QWEN38,
    "zai-org/GLM-4.5": GLM45,
    "zai-org/GLM-4.7-Flash": replace(GLM5, name="GLM-4.7-Flash"),
    "zai-org/GLM-4.7": replace(GLM5, name="GLM-4.7"),
    "zai-org/GLM-5": GLM5,
    "zai-org/GLM-5.1": GLM51,
    "zai-org/GLM-5.2": GLM52,
    "deepseek-ai/DeepSeek-V3": DEEPSEEK_V3,
    "deepseek-ai/DeepSeek-V3-0324": DEEPSEEK_V3,
    "deepseek-ai/DeepSeek-R1": DEEPSEEK_R1,
    "deepseek-ai/DeepSeek-R1-0528": DEEPSEEK_R1,
    "deepseek-ai/DeepSeek-V3.1": DEEPSEEK_V31,
    "deepseek-ai/DeepSeek-V3.1-Terminus": DEEPSEEK_V31,
    "deepseek-ai/DeepSeek-V3.2": DEEPSEEK_V32,
    "deepseek-ai/DeepSeek-V4-Flash": DEEPSEEK_V4,
    "moonshotai/Kimi-K2-Instruct": KIMI_K2,
    "moonshotai/Kimi-K2-Thinking": KIMI_K2_THINKING,
    "moonshotai/Kimi-K2.5": KIMI_K25,
    "moonshotai/Kimi-K2.6": KIMI_K26,
    "openai/gpt-oss-20b": GPT_OSS_TEMPLATE,
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA3,
    "meta-llama/Llama-3.2-3B-Instruct": LLAMA3,
    "MiniMaxAI/MiniMax-M2.7": MINIMAX_M2,
}

QWEN3_MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-8B@2025-04",
    "Qwen/Qwen3-4B-Instruct-2507",
    "Qwen/Qwen3-4B-Thinking-2507",
)
