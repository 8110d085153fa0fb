"""The parts that target and draft are made of, in plain torch: norms, MLPs, routed experts, MLA.

Formulas: docs/kernels and the published models; a weight of a linear map is [out, in] and carries the name that it has
in the checkpoint. Hidden states are [batch, tokens, hidden].
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight, self.eps)


class Mlp(nn.Module):
    """down(silu(gate x) * up x)"""

    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Expert(nn.Module):
    """The same function under the names that Kimi-Linear gives an expert's weights: w1 gate, w3 up, w2 down."""

    def __init__(self, hidden: int, inner: int):
        super().__init__()
        self.w1, self.w2, self.w3 = linear(hidden, inner), linear(inner, hidden), linear(hidden, inner)


class Gate(nn.Module):
    def __init__(self, hidden: int, experts: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, hidden))
        self.e_score_correction_bias = nn.Parameter(torch.zeros(experts), requires_grad=False)
        nn.init.normal_(self.weight, std=hidden**-0.5)


class Moe(nn.Module):
    """Routed and shared experts.

    score = sigmoid(gate x); the experts taken are the top k of score + correction bias; their weights are the scores
    alone, divided by their sum, times the scaling factor. A tie takes the lower expert.
    """

    def __init__(self, hidden: int, inner: int, experts: int, per_token: int, shared: int, scaling: float):
        super().__init__()
        self.per_token, self.scaling, self.inner = per_token, scaling, inner
        self.gate = Gate(hidden, experts)
        self.experts = nn.ModuleList(Expert(hidden, inner) for _ in range(experts))
        self.shared_experts = Mlp(hidden, inner * shared)
        self.load = torch.zeros(experts)  # rows taken since the bias was last moved; not a weight

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        with torch.autocast("cpu", enabled=False):  # routing is decided in fp32
            scores = torch.sigmoid(F.linear(rows.float(), self.gate.weight))
        chosen = torch.sort(scores.detach() + self.gate.e_score_correction_bias, dim=-1, descending=True, stable=True)[1]
        chosen = chosen[:, : self.per_token]
        weights = scores.gather(1, chosen)
        weights = weights / weights.sum(-1, keepdim=True) * self.scaling
        if self.training:
            self.load += chosen.flatten().bincount(minlength=self.load.numel())
        # Every expert runs on every row, the ones not chosen with weight 0: small experts cost less than gathering.
        weight = torch.zeros_like(scores).scatter(1, chosen, weights).repeat_interleave(self.inner, dim=1)
        gate, up, down = (torch.cat([getattr(e, w).weight for e in self.experts], dim)
                          for w, dim in (("w1", 0), ("w3", 0), ("w2", 1)))
        inner = F.silu(F.linear(rows, gate)) * F.linear(rows, up)
        out = F.linear(inner * weight.to(inner.dtype), down) + self.shared_experts(rows)
        return out.view(x.shape)

    @torch.no_grad()
    def move_bias(self, rate: float) -> None:
        """Balances the experts without a loss: an expert that got more than its share loses a little bias."""
        if dist.is_initialized():
            dist.all_reduce(self.load)
        self.gate.e_score_correction_bias += rate * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """RoPE over neighbouring pairs (2i, 2i+1). x [..., tokens, heads, dim], positions [..., tokens]."""
    dim = x.shape[-1]
    frequency = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = positions[..., None, None].double() * frequency
    cos, sin = angle.cos().float(), angle.sin().float()
    even, odd = x.float()[..., 0::2], x.float()[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Mla(nn.Module):
    """Latent attention in its expanded form; what is cached is the row [latent after its norm ; rope lanes].

    kv_b_proj's rows are, for each head, its key rows and then its value rows. Without `theta` the rope lanes are there
    but are not rotated (NoPE). Queries come from q_proj, or from q_a_proj, a norm and q_b_proj where q_rank > 0.
    """

    def __init__(self, hidden: int, heads: int, nope: int, rope: int, value: int, latent: int, eps: float,
                 q_rank: int = 0, theta: float = 0.0):
        super().__init__()
        self.heads, self.nope, self.rope, self.value, self.latent, self.theta = heads, nope, rope, value, latent, theta
        if q_rank:
            self.q_a_proj, self.q_a_layernorm = linear(hidden, q_rank), RmsNorm(q_rank, eps)
            self.q_b_proj = linear(q_rank, heads * (nope + rope))
        else:
            self.q_proj = linear(hidden, heads * (nope + rope))
        self.kv_a_proj_with_mqa = linear(hidden, latent + rope)
        self.kv_a_layernorm = RmsNorm(latent, eps)
        self.kv_b_proj = linear(latent, heads * (nope + value))
        self.o_proj = linear(heads * value, hidden)

    def cache_rows(self, x: Tensor, positions: Tensor) -> Tensor:
        """[batch, tokens, latent + rope]: all that attention ever needs to know of a token."""
        latent, lanes = self.kv_a_proj_with_mqa(x).float().split([self.latent, self.rope], dim=-1)
        if self.theta:
            lanes = rotate(lanes[..., None, :], positions, self.theta)[..., 0, :]
        return torch.cat((self.kv_a_layernorm(latent), lanes), dim=-1)

    def queries(self, x: Tensor, positions: Tensor) -> Tensor:
        """[batch, tokens, heads, nope + rope], scaled by 1 / sqrt(nope + rope)."""
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))) if hasattr(self, "q_a_proj") else self.q_proj(x)
        q = q.float().unflatten(-1, (self.heads, self.nope + self.rope))
        if self.theta:
            plain, lanes = q.split([self.nope, self.rope], dim=-1)
            q = torch.cat((plain, rotate(lanes, positions, self.theta)), dim=-1)
        return q * (self.nope + self.rope) ** -0.5

    def keys_and_values(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        latent, lanes = rows.split([self.latent, self.rope], dim=-1)
        expanded = self.kv_b_proj(latent).float().unflatten(-1, (self.heads, self.nope + self.value))
        keys, values = expanded.split([self.nope, self.value], dim=-1)
        return torch.cat((keys, lanes[..., None, :].expand(*keys.shape[:-1], self.rope)), dim=-1), values

    def attend(self, q: Tensor, rows: Tensor, visible: Tensor) -> Tensor:
        """q [batch, queries, heads, dim]; rows [batch, keys, latent + rope]; visible broadcasts to [batch, 1, queries, keys]."""
        keys, values = self.keys_and_values(rows)
        scores = q.transpose(1, 2) @ keys.permute(0, 2, 3, 1)
        weights = scores.float().masked_fill(~visible, -torch.inf).softmax(-1)
        out = (weights @ values.transpose(1, 2)).transpose(1, 2)
        return self.o_proj(out.flatten(-2))

    def forward(self, x: Tensor, cached: Tensor | None) -> tuple[Tensor, Tensor]:
        """Causal attention of `x`, which follows the rows `cached`; returns the output and all rows."""
        before = 0 if cached is None else cached.shape[1]
        positions = torch.arange(before, before + x.shape[1])
        rows = self.cache_rows(x, positions)
        if cached is not None:
            rows = torch.cat((cached, rows), dim=1)
        visible = torch.arange(rows.shape[1]) <= positions[:, None]
        return self.attend(self.queries(x, positions), rows, visible), rows
