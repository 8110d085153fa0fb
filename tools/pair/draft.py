"""The draft: Kimi-K3-DSpark's shape, small.

A block is the anchor (the newest token, whose hidden state the target has not computed yet) and N - 1 masks at the
positions after the context. Every row sees the whole context and the whole block, before and behind it; row k predicts
the token after position anchor + k. The context of every draft layer is one row for each earlier token:
    h = context_norm(context_proj [tap ; tap ; ...]),   cache row = [kv_a_layernorm(latent) ; rope lanes] of h,
without the layer's input norm. The block's own rows go through the layers as usual.
The Markov head adds to row k's logits a bias that depends only on the token before:  W2 W1[x_{k-1}],  x_0 = anchor.
The confidence head is  sigmoid(w [h_k ; W1[x_{k-1}]] + bias): how probable it is that token k is accepted.
The target's embedding and output head are used; the checkpoint repeats the embedding, as the published one does.
"""

import torch
from torch import Tensor, nn

from layers import Mla, Mlp, RmsNorm, linear


class DraftLayer(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        hidden, eps = c["hidden_size"], c["rms_norm_eps"]
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(hidden, eps), RmsNorm(hidden, eps)
        self.self_attn = Mla(hidden, c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"],
                             c["v_head_dim"], c["kv_lora_rank"], eps, c["q_lora_rank"], c["rope_theta"])
        self.mlp = Mlp(hidden, c["intermediate_size"])

    def forward(self, x: Tensor, positions: Tensor, context: Tensor, visible: Tensor) -> Tensor:
        """x [batch, blocks, N, hidden]; positions [batch, blocks, N]; context [batch, tokens, latent + rope];
        visible [batch, blocks, tokens]: which rows of the context a block sees."""
        batch, blocks, size, hidden = x.shape
        attention, normed = self.self_attn, self.input_layernorm(x)
        q = attention.queries(normed.flatten(1, 2), positions.flatten(1, 2)).unflatten(1, (blocks, size))
        own = attention.cache_rows(normed.flatten(1, 2), positions.flatten(1, 2)).unflatten(1, (blocks, size))
        keys, values = attention.keys_and_values(context)
        own_keys, own_values = attention.keys_and_values(own)
        before = torch.einsum("bmshd,bthd->bmhst", q, keys).float()
        before = before.masked_fill(~visible[:, :, None, None], -torch.inf)
        inside = torch.einsum("bmshd,bmthd->bmhst", q, own_keys).float()
        weights = torch.cat((before, inside), dim=-1).softmax(-1)
        split = before.shape[-1]
        out = torch.einsum("bmhst,bthd->bmshd", weights[..., :split], values)
        out = out + torch.einsum("bmhst,bmthd->bmshd", weights[..., split:], own_values)
        x = x + attention.o_proj(out.flatten(-2))
        return x + self.mlp(self.post_attention_layernorm(x))


class MarkovHead(nn.Module):
    def __init__(self, vocab: int, rank: int):
        super().__init__()
        self.markov_w1 = nn.Embedding(vocab, rank)
        self.markov_w2 = linear(rank, vocab)
        nn.init.normal_(self.markov_w1.weight, std=0.1)
        nn.init.zeros_(self.markov_w2.weight)


class ConfidenceHead(nn.Module):
    def __init__(self, inputs: int):
        super().__init__()
        self.proj = nn.Linear(inputs, 1)


class Draft(nn.Module):
    def __init__(self, config: dict, embedding: Tensor, head: Tensor):
        super().__init__()
        self.config, hidden, eps = config, config["hidden_size"], config["rms_norm_eps"]
        self.block, self.mask = config["block_size"], config["mask_token_id"]
        self.embed_tokens = nn.Embedding.from_pretrained(embedding.detach().clone(), freeze=True)
        self.head = head.detach().clone()  # the target's; not in the checkpoint
        self.context_proj = linear(config["num_target_layers"] * config["target_hidden_size"], hidden)
        self.context_norm = RmsNorm(hidden, eps)
        self.layers = nn.ModuleList(DraftLayer(config) for _ in range(config["num_hidden_layers"]))
        self.final_norm = RmsNorm(hidden, eps)
        self.markov_head = MarkovHead(config["vocab_size"], config["markov_rank"])
        self.confidence_head = ConfidenceHead(hidden + config["markov_rank"])
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and parameter.requires_grad and "markov" not in name:
                nn.init.normal_(parameter, std=0.5 * hidden**-0.5)

    def context_rows(self, taps: list[Tensor], start: int = 0) -> list[Tensor]:
        """Each layer's cache rows for the tokens at positions start, start + 1, ...; a tap is [batch, tokens, hidden]."""
        h = self.context_norm(self.context_proj(torch.cat(taps, dim=-1)))
        positions = torch.arange(start, start + h.shape[1])
        return [layer.self_attn.cache_rows(h, positions) for layer in self.layers]

    def block_hidden(self, context: list[Tensor], anchors: Tensor, at: Tensor) -> Tensor:
        """anchors, at [batch, blocks]: the anchors' tokens and positions; returns [batch, blocks, N, hidden]."""
        tokens = torch.full((*anchors.shape, self.block), self.mask)
        tokens[..., 0] = anchors
        x = self.embed_tokens(tokens)
        positions = at[..., None] + torch.arange(self.block)
        visible = torch.arange(context[0].shape[1]) < at[..., None]
        for layer, rows in zip(self.layers, context, strict=True):
            x = layer(x, positions, rows, visible)
        return self.final_norm(x)

    def base_logits(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(hidden, self.head).float()

    def markov_bias(self, before: Tensor) -> Tensor:
        return self.markov_head.markov_w2(self.markov_head.markov_w1(before)).float()

    def confidence(self, hidden: Tensor, before: Tensor) -> Tensor:
        """Before its sigmoid."""
        return self.confidence_head.proj(torch.cat((hidden, self.markov_head.markov_w1(before)), dim=-1))[..., 0].float()

    def chain(self, base: Tensor, anchors: Tensor) -> Tensor:
        """Greedy: base [..., N, vocab] and anchors [...] give the drafted tokens [..., N]."""
        drafted, before = [], anchors
        for k in range(base.shape[-2]):
            before = (base[..., k, :] + self.markov_bias(before)).argmax(-1)
            drafted.append(before)
        return torch.stack(drafted, dim=-1)
