"""One module a model family. Each knows the framework, and nothing of the others."""

#: Where the registry looks, lazily: module and class of each family.
FAMILIES = (
    "families.qwen3:Qwen3Renderer",
    "families.qwen35:Qwen35Renderer",
    "families.qwen3_coder:Qwen3CoderRenderer",
    "families.kimi:KimiK2Renderer",
    "families.kimi:KimiK25Renderer",
    "families.glm:GLM45Renderer",
    "families.glm:GLM5Renderer",
    "families.deepseek_v3:DeepSeekV3Renderer",
    "families.deepseek_v31:DeepSeekV31Renderer",
    "families.deepseek_v32:DeepSeekV32Renderer",
    "families.deepseek_v4:DeepSeekV4Renderer",
    "families.gpt_oss:GptOssRenderer",
)
