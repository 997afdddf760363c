// Functional models of the ECP5 cells that a mapped design can have, written for simulation: what
// each cell computes, from the ECP5 documentation and Project Trellis's, without delays.

module LUT4 (input A, B, C, D, output Z);
  parameter [15:0] INIT = 0;
  wire [7:0] by_d = D ? INIT[15:8] : INIT[7:0];
  wire [3:0] by_c = C ? by_d[7:4] : by_d[3:0];
  wire [1:0] by_b = B ? by_c[3:2] : by_c[1:0];
  assign Z = A ? by_b[1] : by_b[0];
endmodule

module PFUMX (input ALUT, BLUT, C0, output Z);
  assign Z = C0 ? ALUT : BLUT;
endmodule

module L6MUX21 (input D0, D1, SD, output Z);
  assign Z = SD ? D1 : D0;
endmodule

// Half of a CCU2C: a lookup table whose output the carry inverts, and the carry to the next half.
module ccu2c_half (input A, B, C, D, CIN, output S, COUT);
  parameter [15:0] INIT = 0;
  parameter INJECT = "YES";
  wire propagate, lowest;
  LUT4 #(.INIT(INIT)) whole (A, B, C, D, propagate);
  LUT4 #(.INIT(INIT)) part (A, B, 1'b0, 1'b0, lowest);
  wire generated = INJECT == "YES" ? 1'b0 : lowest;
  assign S = propagate ^ (INJECT == "YES" ? 1'b0 : CIN);
  assign COUT = propagate ? CIN : generated;
endmodule

module CCU2C (input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
  parameter [15:0] INIT0 = 0;
  parameter [15:0] INIT1 = 0;
  parameter INJECT1_0 = "YES";
  parameter INJECT1_1 = "YES";
  wire middle;
  ccu2c_half #(.INIT(INIT0), .INJECT(INJECT1_0)) low (A0, B0, C0, D0, CIN, S0, middle);
  ccu2c_half #(.INIT(INIT1), .INJECT(INJECT1_1)) high (A1, B1, C1, D1, middle, S1, COUT);
endmodule

module TRELLIS_FF (input CLK, LSR, CE, DI, M, output reg Q);
  parameter GSR = "ENABLED";
  parameter CEMUX = "1";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter SRMODE = "LSR_OVER_CE";
  parameter REGSET = "RESET";
  parameter LSRMODE = "LSR";
  localparam VALUE = REGSET == "SET" ? 1'b1 : 1'b0;
  wire clock = CLKMUX == "INV" ? ~CLK : CLK;
  wire reset = LSRMUX == "INV" ? ~LSR : LSR;
  wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CEMUX == "INV" ? ~CE : CE;
  wire next = LSRMODE == "PRLD" ? M : VALUE;
  initial Q = VALUE;
  generate
    if (SRMODE == "ASYNC") begin
      always @(posedge clock, posedge reset)
        if (reset) Q <= VALUE; else if (enable) Q <= DI;
    end else begin
      always @(posedge clock) if (reset) Q <= next; else if (enable) Q <= DI;
    end
  endgenerate
endmodule
