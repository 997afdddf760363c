"""Attention whose projections and products are the hardware's."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from axs6.torch.functional import check_tensors, multiply
from axs6.torch.layers import Converted, linear
from axs6.torch.site import Site
from axs6.torch.transforms import is_transformed

PROJECTIONS = ("query", "key", "value")


class MultiheadAttention(Converted, nn.MultiheadAttention):
    """`nn.MultiheadAttention` in AXS-6: its three projections, scores, and sum of values.

    The output projection is a layer of its own, `out_proj`. A query that masks leave without a
    key gets weights of zero, as in torch's `scaled_dot_product_attention`.
    """

    axs6_sites: dict[str, Site]

    @property
    def axs6_site(self) -> Site:  # type: ignore[override]
        """One of its places; all have the same options."""
        return self.axs6_sites["scores"]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Arguments and results are those of `nn.MultiheadAttention`."""
        if is_causal and attn_mask is None:
            raise ValueError(f"{self._name}: is_causal needs attn_mask, which it describes")
        check_tensors(self.axs6_site.handle, query, key, value)
        batched = query.ndim == 3
        inputs = [query, key, value]
        if not batched:
            inputs = [x.unsqueeze(0) for x in inputs]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            inputs = [x.transpose(0, 1) for x in inputs]
        q, k, v = self._heads(inputs)
        mask = self._mask(attn_mask, key_padding_mask, q, inputs[1].shape[1])
        dropout = self.dropout if self.training else 0.0
        sites = (self.axs6_sites["scores"].handle, self.axs6_sites["values"].handle)
        y, weights = attention(q, k, v, mask, dropout, sites)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        if not batched:
            y, weights = y.squeeze(0), weights.squeeze(0)
        elif not self.batch_first:
            y = y.transpose(0, 1)
        if not need_weights:
            return y, None
        return y, weights.mean(-3) if average_attn_weights else weights

    @property
    def _name(self) -> str:
        return self.axs6_sites["scores"].name.removesuffix(".scores")

    def _heads(self, inputs: list[Tensor]) -> list[Tensor]:
        """Projected query, key and value by heads, (N, H, L or S, E / H)."""
        weights = [self.in_proj_weight] * 3
        if self.in_proj_weight is None:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (
            linear(x, weight, bias, self.axs6_sites[name].handle)
            for x, weight, bias, name in zip(inputs, weights, biases, PROJECTIONS, strict=True)
        )
        if self.bias_k is not None and self.bias_v is not None:
            k = torch.cat([k, self.bias_k.expand(len(k), 1, -1)], 1)
            v = torch.cat([v, self.bias_v.expand(len(v), 1, -1)], 1)
        heads = [
            x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in (q, k, v)
        ]
        if self.add_zero_attn:
            heads[1:] = [functional.pad(x, (0, 0, 0, 1)) for x in heads[1:]]
        return heads

    def _mask(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, q: Tensor, keys: int
    ) -> Tensor | None:
        """Both masks in one, to be added to scores (N, H, L, S)."""
        count, heads, queries, _ = q.shape
        total = None
        if attn_mask is not None:
            allowed = ((queries, keys), (count * heads, queries, keys))
            if tuple(attn_mask.shape) not in allowed:
                raise ValueError(
                    f"{self._name}: attn_mask must have shape {allowed[0]} or {allowed[1]}, "
                    f"not {tuple(attn_mask.shape)}"
                )
            total = self._additive(attn_mask, "attn_mask", q.dtype)
            total = total.view(-1, heads, queries, keys) if total.ndim == 3 else total
        if key_padding_mask is not None:
            if tuple(key_padding_mask.shape) != (count, keys):
                raise ValueError(
                    f"{self._name}: key_padding_mask must have shape {(count, keys)} for "
                    f"{count} sequences, not {tuple(key_padding_mask.shape)}"
                )
            padding = self._additive(key_padding_mask, "key_padding_mask", q.dtype)
            padding = padding.view(count, 1, 1, keys)
            total = padding if total is None else total + padding
        # Keys that the module appends itself are never masked.
        extra = (self.bias_k is not None) + self.add_zero_attn
        return functional.pad(total, (0, extra)) if total is not None and extra else total

    def _additive(self, mask: Tensor, name: str, dtype: torch.dtype) -> Tensor:
        """A mask to be added: -inf where a bool mask is True, else the mask itself."""
        if mask.dtype == torch.bool:
            zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
            return zeros.masked_fill(mask, -torch.inf)
        if not mask.is_floating_point():
            raise TypeError(f"{self._name}: {name} must be bool or floating, not {mask.dtype}")
        return mask.to(dtype)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    handles: tuple[int, int],
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(scale * query key^T + mask) value, both products in AXS-6.

    Args:
        query, key, value: (..., L, E), (..., S, E), (..., S, V).
        mask: added to the scores, broadcasting to (..., L, S); or None.
        dropout: dropout probability of the weights.
        handles: places of the two products.
        scale: 1 / sqrt(E) if None; multiplies the query before encoding.

    Returns:
        The result (..., L, V) and the weights (..., L, S), dropped weights as zero.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = multiply(query * factor, key.mT, handles[0])
    weights = scores.softmax(-1) if mask is None else _masked_softmax(scores, mask)
    if dropout:
        weights = functional.dropout(weights, dropout)
    return multiply(weights, value, handles[1]), weights


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """softmax(scores + mask), 0 where a row is -inf alone; `scores` may be overwritten.

    Without derivatives this is done in place: fresh memory costs more than the arithmetic.
    """
    mask = mask.to(scores.dtype)
    compiling = torch.compiler.is_compiling()
    if compiling or torch.is_grad_enabled() or is_transformed() or not _covers(scores, mask):
        scores = scores + mask
        alone = (scores == -torch.inf).all(-1, keepdim=True)
        return scores.softmax(-1).masked_fill(alone, 0.0)
    alone = scores.add_(mask).amax(-1, keepdim=True) == -torch.inf
    return torch.softmax(scores, -1, out=scores).masked_fill_(alone, 0.0)


def _covers(scores: Tensor, mask: Tensor) -> bool:
    """Whether scores have keys, and a mask broadcasts to their shape."""
    pairs = zip(mask.shape[::-1], scores.shape[::-1], strict=False)
    return (
        scores.shape[-1] > 0
        and mask.ndim <= scores.ndim
        and all(own in (1, whole) for own, whole in pairs)
    )


def scaled_dot_product_attention(
    handles: tuple[int, int],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch's function of this name; two places compute its products."""
    if is_causal:
        if attn_mask is not None:
            raise ValueError("attn_mask must be None with is_causal")
        shape = (query.shape[-2], key.shape[-2])
        attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        # True takes part here, the other way round than in MultiheadAttention.
        zeros = torch.zeros(attn_mask.shape, dtype=query.dtype, device=query.device)
        attn_mask = zeros.masked_fill(~attn_mask, -torch.inf)
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(repeats, -3) for x in (key, value))
    return attention(query, key, value, attn_mask, dropout_p, handles, scale)[0]
