"""Kimi delta attention: a gated delta rule with one decay for each channel of the key.

For each head, with q, k (unit length, q also times 1 / sqrt(dim)), v, decay a = exp(g) in (0, 1]^dim, b in (0, 1):
    S <- diag(a) S;    S <- S + k (b (v - S^T k))^T;    o = S^T q          S is [key dim, value dim]
    g = -exp(A_log) * softplus(f_b f_a x + dt_bias),  b = sigmoid(b_proj x)
    y = o_proj(rms_norm(o) * sigmoid(g_b g_a x))
q, k and v pass a causal convolution over the last `kernel` tokens, channel by channel, and silu.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from layers import RmsNorm, linear

CHUNK = 16
LEAST_GATE = -8.0  # only in the chunked form: keeps exp() of half a chunk's decay inside fp32; exp(-8) forgets all


class Convolution(nn.Module):
    def __init__(self, channels: int, kernel: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, kernel) * kernel**-0.5)


def unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def recurrent(q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The definition, token by token: q, k, v, g [batch, tokens, heads, dim], b [batch, tokens, heads]."""
    out = []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None]
        error = v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], b[:, t, :, None] * error)
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(out, dim=1), state


def chunked(q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The same function, 16 tokens at a time, for training; the number of tokens is a multiple of 16.

    With G the sum of g since the middle of a chunk, and M the state decayed to there, the corrections
    u_t = b_t (v_t - S^T k_t) obey the triangular system
        (I + N) U = diag(b) (V - (K exp G) M),    N = diag(b) lower((K exp G) (K exp -G)^T),
    and (I + N)^-1 = (I + N^8)(I + N^4)(I + N^2)(I - N), as N^16 = 0.
    """
    batch, tokens, heads, dim = q.shape
    chunks, together = tokens // CHUNK, batch * heads

    def split(x: Tensor) -> Tensor:
        return x.view(batch, chunks, CHUNK, heads, -1).permute(1, 0, 3, 2, 4)

    x = torch.stack([split(x) for x in (q, k, v, g.clamp(min=LEAST_GATE))])
    q, k, v, g = x.view(4, chunks * together, CHUNK, dim)  # one matrix for each chunk, sequence and head
    b = split(b[..., None]).reshape(chunks * together, CHUNK, 1)
    total = g.cumsum(-2)
    middle, last = total[:, CHUNK // 2 - 1 : CHUNK // 2], total[:, -1:]
    since = total - middle
    rise, fall = since.exp(), (-since).exp()
    k_rise, q_rise, k_fall = k * rise, q * rise, k * fall
    power = -b * torch.bmm(k_rise, k_fall.mT).tril(-1)  # tril first: what it drops can be infinite
    solved = b * torch.cat((v, k_rise), dim=-1)
    for doubling in range(4):
        solved = torch.baddbmm(solved, power, solved)
        power = torch.bmm(power, power) if doubling < 3 else power
    fixed, carried = solved[..., :dim], solved[..., dim:]
    to_middle, to_end = middle.exp().mT, (last - middle).exp().mT
    states, corrections = [], []
    state = state.view(together, dim, dim)
    parts = [x.contiguous().view(chunks, together, *x.shape[1:]).unbind(0) for x in (fixed, carried, k_fall, to_middle, to_end)]
    for rest, reads, keys, first, second in zip(*parts, strict=True):
        decayed = first * state
        corrections.append(torch.baddbmm(rest, reads, decayed, alpha=-1))
        states.append(decayed)
        state = second * torch.baddbmm(decayed, keys.mT, corrections[-1])
    inside = torch.bmm(q_rise, k_fall.mT).tril()
    out = torch.baddbmm(torch.bmm(inside, torch.cat(corrections)), q_rise, torch.cat(states))
    out = out.view(chunks, batch, heads, CHUNK, dim).permute(1, 0, 3, 2, 4).reshape(batch, tokens, heads, dim)
    return out, state.view(batch, heads, dim, dim)


class Kda(nn.Module):
    def __init__(self, hidden: int, heads: int, dim: int, kernel: int, eps: float):
        super().__init__()
        self.heads, self.dim, self.kernel, width = heads, dim, kernel, heads * dim
        self.q_proj, self.k_proj, self.v_proj = linear(hidden, width), linear(hidden, width), linear(hidden, width)
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (Convolution(width, kernel) for _ in range(3))
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 8).log().view(1, 1, heads, 1))
        self.f_a_proj, self.f_b_proj = linear(hidden, dim), linear(dim, width)
        rate = torch.exp(torch.empty(width).uniform_(-6.9, -2.3))  # softplus(dt_bias) from 0.001 to 0.1
        self.dt_bias = nn.Parameter(rate + torch.log(-torch.expm1(-rate)))
        self.b_proj = linear(hidden, heads)
        self.g_a_proj, self.g_b_proj = linear(hidden, dim), linear(dim, width)
        self.o_norm = RmsNorm(dim, eps)
        self.o_proj = linear(width, hidden)

    def start(self, batch: int) -> tuple[Tensor, Tensor]:
        """The inputs that the convolutions still see, [batch, kernel - 1, 3 * width], and the zero state."""
        width = self.heads * self.dim
        return torch.zeros(batch, self.kernel - 1, 3 * width), torch.zeros(batch, self.heads, self.dim, self.dim)

    def convolve(self, x: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
        window = torch.cat((tail, x), dim=1)
        weight = torch.cat((self.q_conv1d.weight, self.k_conv1d.weight, self.v_conv1d.weight))
        out = F.conv1d(window.transpose(1, 2), weight, groups=weight.shape[0]).transpose(1, 2)
        return F.silu(out), window[:, -(self.kernel - 1) :]

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None, form=recurrent) -> tuple[Tensor, tuple]:
        """`x` [batch, tokens, hidden] after `state`; returns the output and the state after it."""
        tail, memory = self.start(x.shape[0]) if state is None else state
        width, by_head = self.heads * self.dim, (self.heads, self.dim)
        reads = (self.q_proj, self.k_proj, self.v_proj, self.f_a_proj, self.g_a_proj, self.b_proj)
        raw = F.linear(x, torch.cat([read.weight for read in reads]))  # one product; the maps all read x
        qkv, f, gate, b = raw.split([3 * width, self.dim, self.dim, self.heads], dim=-1)
        f, gate = self.f_b_proj(f), self.g_b_proj(gate)
        with torch.autocast("cpu", enabled=False):
            qkv, tail = self.convolve(qkv.float(), tail)
            qkv = qkv.unflatten(-1, (3, *by_head))
            q, k = unit(qkv[:, :, :2]).unbind(2)
            g = -self.A_log.exp() * F.softplus(f.float() + self.dt_bias).unflatten(-1, by_head)
            out, memory = form(q * self.dim**-0.5, k, qkv[:, :, 2], g, torch.sigmoid(b.float()), memory)
            out = self.o_norm(out) * torch.sigmoid(gate.float()).unflatten(-1, by_head)
        return self.o_proj(out.flatten(-2)), (tail, memory)
