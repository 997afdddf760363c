// Functional models of the iCE40 cells that a mapped design can have, written for simulation: what
// each cell computes, from the ICE40 technology library's documentation, without delays.

module SB_LUT4 (output O, input I0, I1, I2, I3);
  parameter [15:0] LUT_INIT = 0;
  wire [7:0] by3 = I3 ? LUT_INIT[15:8] : LUT_INIT[7:0];
  wire [3:0] by2 = I2 ? by3[7:4] : by3[3:0];
  wire [1:0] by1 = I1 ? by2[3:2] : by2[1:0];
  assign O = I0 ? by1[1] : by1[0];
endmodule

module SB_CARRY (output CO, input I0, I1, CI);
  assign CO = (I0 & I1) | (CI & (I0 | I1));
endmodule

module SB_DFF (output reg Q, input C, D);
  initial Q = 0;
  always @(posedge C) Q <= D;
endmodule

module SB_DFFSR (output reg Q, input C, R, D);
  initial Q = 0;
  always @(posedge C) if (R) Q <= 0; else Q <= D;
endmodule

module SB_DFFR (output reg Q, input C, R, D);
  initial Q = 0;
  always @(posedge C, posedge R) if (R) Q <= 0; else Q <= D;
endmodule

module SB_DFFSS (output reg Q, input C, S, D);
  initial Q = 0;
  always @(posedge C) if (S) Q <= 1; else Q <= D;
endmodule

module SB_DFFS (output reg Q, input C, S, D);
  initial Q = 0;
  always @(posedge C, posedge S) if (S) Q <= 1; else Q <= D;
endmodule

module SB_DFFE (output reg Q, input C, E, D);
  initial Q = 0;
  always @(posedge C) if (E) Q <= D;
endmodule

module SB_DFFESR (output reg Q, input C, E, R, D);
  initial Q = 0;
  always @(posedge C) if (E) Q <= R ? 1'b0 : D;
endmodule

module SB_DFFER (output reg Q, input C, E, R, D);
  initial Q = 0;
  always @(posedge C, posedge R) if (R) Q <= 0; else if (E) Q <= D;
endmodule

module SB_DFFESS (output reg Q, input C, E, S, D);
  initial Q = 0;
  always @(posedge C) if (E) Q <= S ? 1'b1 : D;
endmodule

module SB_DFFES (output reg Q, input C, E, S, D);
  initial Q = 0;
  always @(posedge C, posedge S) if (S) Q <= 1; else if (E) Q <= D;
endmodule

module SB_DFFN (output reg Q, input C, D);
  initial Q = 0;
  always @(negedge C) Q <= D;
endmodule

module SB_DFFNSR (output reg Q, input C, R, D);
  initial Q = 0;
  always @(negedge C) if (R) Q <= 0; else Q <= D;
endmodule

module SB_DFFNR (output reg Q, input C, R, D);
  initial Q = 0;
  always @(negedge C, posedge R) if (R) Q <= 0; else Q <= D;
endmodule

module SB_DFFNSS (output reg Q, input C, S, D);
  initial Q = 0;
  always @(negedge C) if (S) Q <= 1; else Q <= D;
endmodule

module SB_DFFNS (output reg Q, input C, S, D);
  initial Q = 0;
  always @(negedge C, posedge S) if (S) Q <= 1; else Q <= D;
endmodule

module SB_DFFNE (output reg Q, input C, E, D);
  initial Q = 0;
  always @(negedge C) if (E) Q <= D;
endmodule

module SB_DFFNESR (output reg Q, input C, E, R, D);
  initial Q = 0;
  always @(negedge C) if (E) Q <= R ? 1'b0 : D;
endmodule

module SB_DFFNER (output reg Q, input C, E, R, D);
  initial Q = 0;
  always @(negedge C, posedge R) if (R) Q <= 0; else if (E) Q <= D;
endmodule

module SB_DFFNESS (output reg Q, input C, E, S, D);
  initial Q = 0;
  always @(negedge C) if (E) Q <= S ? 1'b1 : D;
endmodule

module SB_DFFNES (output reg Q, input C, E, S, D);
  initial Q = 0;
  always @(negedge C, posedge S) if (S) Q <= 1; else if (E) Q <= D;
endmodule
