"""Names that Verilog takes without a backslash: letters, digits and `_`, no reserved word."""

import re

_WORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic
before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle
checker class clocking cmos config const constraint context continue cover covergroup
coverpoint cross deassign default defparam design disable dist do edge else end endcase
endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface
endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable
endtask enum event eventually expect export extends extern final first_match for force foreach
forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins
illegal_bins implements implies import incdir include initial inout input inside instance int
integer interconnect interface intersect join join_any join_none large let liblist library
local localparam logic longint macromodule matches medium modport module nand negedge nettype
new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed parameter
pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real
realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
showcancelled signed small soft solve specify specparam static string strong strong0 strong1
struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout
time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef
union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""

KEYWORDS = frozenset(_WORDS.split())
"""Reserved words of Verilog and SystemVerilog, which no module may be named.

Source: IEEE 1800-2017, annex B, which has all of IEEE 1364-2005 too."""

_NAME = re.compile(rf"(?<=\\)(?:(?=\w*[.$])[\w.$]+|{'|'.join(sorted(KEYWORDS))})(?!\S)")
"""A name in RTLIL that is not plain, as `lane.add`, `i$3` or `table`.

A string in an attribute is none: a quotation mark follows it."""

_TRIGGER = re.compile(r"\\\$auto\$verilog_backend\.cc:\d+:dump_module\$(\d+) ")
"""A register that Yosys adds so that `always @*` runs once at the start of a simulation."""


def plain_names(text: str) -> str:
    """RTLIL with plain names alone.

    Names of modules have dots, and those of signals that repeat in a module a `$`: each becomes
    `_`. Reserved words get a `_` behind them, and a name that is taken a number.
    """
    taken = set(re.findall(r"(?<=\\)\w+", text))
    plain: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        name = found[0]
        if name not in plain:
            first = new = f"{name}_" if name in KEYWORDS else re.sub(r"[.$]", "_", name)
            number = 1
            while new in taken:
                number += 1
                new = f"{first}_{number}"
            taken.add(new)
            plain[name] = new
        return plain[name]

    lines = text.splitlines(keepends=True)
    return "".join(
        line if line.lstrip().startswith("attribute ") else _NAME.sub(rename, line)
        for line in lines
    )


def plain_triggers(verilog: str) -> str:
    """Verilog of Yosys with plain names for the registers that it adds."""
    return _TRIGGER.sub(r"_trigger_\1_", verilog)
