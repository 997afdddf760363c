"""Measuring the products of a model while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from torch import Tensor

from axs6.golden import packed_bytes
from axs6.torch.backends import ProductBatch, backend_of
from axs6.torch.counted import Counter
from axs6.torch.options import check_backend
from axs6.torch.report import Report, ReportRow
from axs6.torch.site import Site, Wholes, observed


@contextmanager
def profile(compare: str | None = None) -> Iterator[Report]:
    """A context in which every product of a block format is measured.

    Args:
        compare: another backend ("emulated", "rtl" or "golden") that computes each product
            too; the report counts differing bits; there must be none.

    Yields:
        The report, which fills while models run: a row for each place, in the order of first
        runs, and in `unconverted` one for each module and operator of torch with products that
        are not converted. Gradients are not measured.

    Raises:
        ValueError: an unknown backend.
    """
    if compare is not None:
        check_backend("compare", compare)
    report = Report(compare)
    rows: dict[int, ReportRow] = {}

    def observe(site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes) -> None:
        if site.handle not in rows:
            rows[site.handle] = ReportRow(site.name, site.options.backend)
            report.rows.append(rows[site.handle])
        _measure(rows[site.handle], site, a, b, result)
        if compare is not None:
            row = rows[site.handle]
            row.bits_different = (row.bits_different or 0) + _difference(
                compare, site, a, b, result, wholes
            )

    with observed(observe), Counter(report.unconverted):
        yield report


def _measure(row: ReportRow, site: Site, a: Tensor, b: Tensor, result: ProductBatch) -> None:
    """Add a product of operands (G, M, K) and (G, N, K) to its row."""
    groups, queries, depth = a.shape
    columns = b.shape[1]
    row.calls += 1
    row.macs += groups * queries * columns * depth
    for fmt, rows in zip(site.formats, (queries, columns), strict=True):
        row.packed_bytes += groups * rows * -(-depth // fmt.block) * packed_bytes(fmt)
    row.fp32_bytes += 4 * groups * (queries + columns) * depth
    if result.cycles is not None and result.utilisation is not None:
        row.cycles = (row.cycles or 0) + result.cycles
        row.busy_cycles += result.cycles * result.utilisation
    reference = (a.float() @ b.float().mT).double()
    row.signal += float(reference.square().sum())
    row.noise += float((result.values.to(a.device).double() - reference).square().sum())


def _difference(
    compare: str, site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes
) -> int:
    """Bits in which another backend's product differs."""
    if not (a.numel() and b.numel()):
        return 0
    options = site.options
    if compare != options.backend:
        options = replace(options, backend=compare, tile=())
    backend = backend_of(options)
    left, right = (
        site.prepare_for(backend, a, "left", wholes[0]),
        site.prepare_for(backend, b, "right", wholes[1]),
    )
    other = backend.product(left, right).values
    ours, theirs = (
        np.ascontiguousarray(x.detach().cpu().numpy()).view(np.uint32)
        for x in (result.values, other)
    )
    return int(np.bitwise_count(ours ^ theirs).sum(dtype=np.int64))
