"""DeepSeek-V3's module of multi-token prediction, which transformers leaves out: the report's section 2.2 around one of
transformers' own layers. With h the model's state of a position behind its last norm and t the token after it,

    x = eh_proj [enorm(embedding(t)) ; hnorm(h)]

goes through the layer; the shared head's norm and the model's head then predict the token after t. The order of the
pair, and that h stands behind the norm, are vLLM's (model_executor/models/deepseek_mtp.py), as published weights want it.
"""

import torch
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as family


class MtpModule(family.DeepseekV3DecoderLayer):
    """Its state has the published names, without "model.layers.N."."""

    def __init__(self, config):
        super().__init__(config, config.num_hidden_layers)
        self.enorm = family.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.hnorm = family.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.eh_proj = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.shared_head = torch.nn.ModuleDict(
            {"norm": family.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)})

    def states(self, model, tokens, states):
        """Behind the layer, one row for each pair of a token and the state before it."""
        joined = torch.cat([self.enorm(model.model.embed_tokens(tokens)), self.hnorm(states)], dim=-1)
        x = self.eh_proj(joined)[None]
        positions = torch.arange(x.shape[1])[None]
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)[None, None]
        return super().forward(x, attention_mask=mask, position_ids=positions,
                               position_embeddings=model.model.rotary_emb(x, positions))[0]

    def logits(self, model, states):
        return model.lm_head(self.shared_head["norm"](states))


def reference(model, module, tokens, chain_after, chain_tokens):
    """`mtp_logits` [tokens - 1, vocab]: row i predicts what follows token i + 1. And `chain_tokens` tokens drafted one
    after the other behind the first `chain_after` tokens and the one that stands there: their logits."""
    with torch.no_grad():
        tokens = tokens.long()
        states = model.model(tokens[None], use_cache=False).last_hidden_state[0]
        logits = module.logits(model, module.states(model, tokens[1:], states[:-1]))
        drafted, before = [tokens[chain_after]], list(states[:chain_after])
        chain = []
        for _ in range(chain_tokens):
            after = torch.stack(list(tokens[1:chain_after]) + drafted)
            out = module.states(model, after, torch.stack(before))
            chain.append(module.logits(model, out[-1]))
            drafted.append(chain[-1].argmax())
            before.append(out[-1])
    return {"mtp_logits": logits.float().contiguous(), "mtp_chain": torch.stack(chain).float().contiguous()}
