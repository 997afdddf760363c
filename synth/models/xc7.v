// Functional models of the 7-series cells that a mapped design can have, written for simulation: what
// each cell computes, from the libraries guide of the 7 series, without delays.

module LUT1 (output O, input I0);
  parameter [1:0] INIT = 0;
  assign O = I0 ? INIT[1] : INIT[0];
endmodule

module LUT2 (output O, input I0, I1);
  parameter [3:0] INIT = 0;
  wire [1:0] by1 = I1 ? INIT[3:2] : INIT[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module LUT3 (output O, input I0, I1, I2);
  parameter [7:0] INIT = 0;
  wire [3:0] by2 = I2 ? INIT[7:4] : INIT[3:0];
  wire [1:0] by1 = I1 ? by2[3:2] : by2[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module LUT4 (output O, input I0, I1, I2, I3);
  parameter [15:0] INIT = 0;
  wire [7:0] by3 = I3 ? INIT[15:8] : INIT[7:0];
  wire [3:0] by2 = I2 ? by3[7:4] : by3[3:0];
  wire [1:0] by1 = I1 ? by2[3:2] : by2[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module LUT5 (output O, input I0, I1, I2, I3, I4);
  parameter [31:0] INIT = 0;
  wire [15:0] by4 = I4 ? INIT[31:16] : INIT[15:0];
  wire [7:0] by3 = I3 ? by4[15:8] : by4[7:0];
  wire [3:0] by2 = I2 ? by3[7:4] : by3[3:0];
  wire [1:0] by1 = I1 ? by2[3:2] : by2[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module LUT6 (output O, input I0, I1, I2, I3, I4, I5);
  parameter [63:0] INIT = 0;
  wire [31:0] by5 = I5 ? INIT[63:32] : INIT[31:0];
  wire [15:0] by4 = I4 ? by5[31:16] : by5[15:0];
  wire [7:0] by3 = I3 ? by4[15:8] : by4[7:0];
  wire [3:0] by2 = I2 ? by3[7:4] : by3[3:0];
  wire [1:0] by1 = I1 ? by2[3:2] : by2[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module MUXF7 (output O, input I0, I1, S);
  assign O = S ? I1 : I0;
endmodule

module MUXF8 (output O, input I0, I1, S);
  assign O = S ? I1 : I0;
endmodule

module INV (output O, input I);
  assign O = ~I;
endmodule

module CARRY4 (output [3:0] CO, O, input CI, CYINIT, input [3:0] DI, S);
  wire [4:0] carry;
  assign carry[0] = CI | CYINIT;
  genvar k;
  generate
    for (k = 0; k < 4; k = k + 1) begin
      assign carry[k + 1] = S[k] ? carry[k] : DI[k];
    end
  endgenerate
  assign CO = carry[4:1];
  assign O = S ^ carry[3:0];
endmodule

module FDRE (output reg Q, input C, CE, D, R);
  parameter [0:0] INIT = 0;
  parameter [0:0] IS_C_INVERTED = 0;
  parameter [0:0] IS_D_INVERTED = 0;
  parameter [0:0] IS_R_INVERTED = 0;
  wire clock = C ^ IS_C_INVERTED;
  wire clear = R ^ IS_R_INVERTED;
  initial Q = INIT;
  always @(posedge clock) if (clear) Q <= 0; else if (CE) Q <= D ^ IS_D_INVERTED;
endmodule

module FDSE (output reg Q, input C, CE, D, S);
  parameter [0:0] INIT = 1;
  parameter [0:0] IS_C_INVERTED = 0;
  parameter [0:0] IS_D_INVERTED = 0;
  parameter [0:0] IS_S_INVERTED = 0;
  wire clock = C ^ IS_C_INVERTED;
  wire clear = S ^ IS_S_INVERTED;
  initial Q = INIT;
  always @(posedge clock) if (clear) Q <= 1; else if (CE) Q <= D ^ IS_D_INVERTED;
endmodule

module FDCE (output reg Q, input C, CE, D, CLR);
  parameter [0:0] INIT = 0;
  parameter [0:0] IS_C_INVERTED = 0;
  parameter [0:0] IS_D_INVERTED = 0;
  parameter [0:0] IS_CLR_INVERTED = 0;
  wire clock = C ^ IS_C_INVERTED;
  wire clear = CLR ^ IS_CLR_INVERTED;
  initial Q = INIT;
  always @(posedge clock, posedge clear) if (clear) Q <= 0; else if (CE) Q <= D ^ IS_D_INVERTED;
endmodule

module FDPE (output reg Q, input C, CE, D, PRE);
  parameter [0:0] INIT = 1;
  parameter [0:0] IS_C_INVERTED = 0;
  parameter [0:0] IS_D_INVERTED = 0;
  parameter [0:0] IS_PRE_INVERTED = 0;
  wire clock = C ^ IS_C_INVERTED;
  wire clear = PRE ^ IS_PRE_INVERTED;
  initial Q = INIT;
  always @(posedge clock, posedge clear) if (clear) Q <= 1; else if (CE) Q <= D ^ IS_D_INVERTED;
endmodule
