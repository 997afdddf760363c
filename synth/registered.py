"""A unit between registers, for comparing areas of units."""

from dataclasses import replace

from axs6.golden.formats import FP32
from axs6.hw.core.layouts import Field
from axs6.hw.verilog import Generated

TEMPLATE = """
module {top}(input clk, input rst, input i_valid, input [{i}:0] i, output reg o_valid,
             output reg [{o}:0] o);
  reg valid;
  reg [{i}:0] item;
  wire valid_o;
  wire [{o}:0] result;
  always @(posedge clk) begin
    item <= i;
    o <= result;
    valid <= i_valid & ~rst;
    o_valid <= valid_o & ~rst;
  end
  {module} unit(
    .clk(clk), .rst(rst), .i_valid(valid), .i_ready(), .i_payload({{{payload}}}),
    .o_valid(valid_o), .o_ready(1'b1), .o_payload(result)
  );
endmodule
"""

OUTER = "outer"
"""The field of a dot product's items that has the scales of channels and tensors."""

ONE = FP32.bias << FP32.fraction_bits
"""The value 1 of it."""


def registered(design: Generated) -> Generated:
    """A stream unit with a register at each input and output, under a module of its own.

    It never stalls, so of its handshake only `valid` is left. The scales of channels and tensors
    are 1: here software multiplies by them. The latency is two cycles more than that of the unit.

    Args:
        design: with the streams `i` and `o`.
    """
    manifest, top = design.manifest, f"{design.module}_registered"
    widths = {stream["name"]: stream["width"] for stream in manifest["streams"]}
    text = TEMPLATE.format(
        top=top,
        module=design.module,
        i=widths["i"] - 1,
        o=widths["o"] - 1,
        payload=", ".join(map(_taken, reversed(design.inputs))),
    )
    described = {**manifest, "module": top, "latency": manifest["latency"] + 2}
    return replace(design, module=top, verilog=design.verilog + text, manifest=described)


def _taken(field: Field) -> str:
    """A field of an item, as the unit takes it."""
    if field.name == OUTER:
        return f"{field.width}'d{ONE}"
    return f"item[{field.offset + field.count * field.width - 1}:{field.offset}]"
