"""The target: Kimi-Linear's layers, small. KDA layers, one NoPE MLA layer between them, routed experts but for layer 0."""

import torch
from torch import Tensor, nn

import kda
from layers import Mla, Mlp, Moe, RmsNorm, linear


class Layer(nn.Module):
    def __init__(self, c: dict, index: int):
        super().__init__()
        hidden, eps, kda_shape = c["hidden_size"], c["rms_norm_eps"], c["linear_attn_config"]
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(hidden, eps), RmsNorm(hidden, eps)
        if index + 1 in kda_shape["kda_layers"]:
            self.self_attn = kda.Kda(hidden, kda_shape["num_heads"], kda_shape["head_dim"],
                                     kda_shape["short_conv_kernel_size"], eps)
        else:
            self.self_attn = Mla(hidden, c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"],
                                 c["v_head_dim"], c["kv_lora_rank"], eps)
        if index < c["first_k_dense_replace"]:
            self.mlp = Mlp(hidden, c["intermediate_size"])
        else:
            self.block_sparse_moe = Moe(hidden, c["moe_intermediate_size"], c["num_experts"], c["num_experts_per_token"],
                                        c["num_shared_experts"], c["routed_scaling_factor"])

    def forward(self, x: Tensor, state, form) -> tuple[Tensor, object]:
        arguments = (form,) if isinstance(self.self_attn, kda.Kda) else ()
        out, state = self.self_attn(self.input_layernorm(x), state, *arguments)
        x = x + out
        feed = self.mlp if hasattr(self, "mlp") else self.block_sparse_moe
        return x + feed(self.post_attention_layernorm(x)), state


class Backbone(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c["num_hidden_layers"]))
        self.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])


class Target(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.config = config
        self.model = Backbone(config)
        self.lm_head = linear(config["hidden_size"], config["vocab_size"])
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.endswith("gate.weight"):
                nn.init.normal_(parameter, std=0.5 * config["hidden_size"] ** -0.5)

    def forward(self, tokens: Tensor, states: list | None = None, form=kda.recurrent, taps: tuple[int, ...] = ()):
        """tokens [batch, tokens] after `states`; returns logits, the states after them, and the tapped hidden states.

        A tap is the residual stream after that layer (from 0), [batch, tokens, hidden].
        """
        states = [None] * len(self.model.layers) if states is None else states
        x = self.model.embed_tokens(tokens)
        after, tapped = [], []
        for index, (layer, state) in enumerate(zip(self.model.layers, states, strict=True)):
            x, state = layer(x, state, form)
            after.append(state)
            if index in taps:
                tapped.append(x)
        return self.lm_head(self.model.norm(x)).float(), after, tapped
