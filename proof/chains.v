// Additions of Yosys's $alu as chains of full adders.
(* techmap_celltype = "$alu" *)
module chain (A, B, CI, BI, X, Y, CO);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  input [A_WIDTH-1:0] A;
  input [B_WIDTH-1:0] B;
  input CI, BI;
  output [Y_WIDTH-1:0] X, Y, CO;

  wire [Y_WIDTH-1:0] first, second;
  generate
    if (A_WIDTH == 0) assign first = 0;
    else \$pos #(.A_SIGNED(A_SIGNED && B_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) widen_a (.A(A), .Y(first));
    if (B_WIDTH == 0) assign second = 0;
    else \$pos #(.A_SIGNED(A_SIGNED && B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) widen_b (.A(B), .Y(second));
  endgenerate
  wire [Y_WIDTH-1:0] added = second ^ {Y_WIDTH{BI}};
  wire [Y_WIDTH:0] carry;
  assign carry[0] = CI;
  assign X = first ^ added;
  assign Y = X ^ carry[Y_WIDTH-1:0];
  assign CO = carry[Y_WIDTH:1];
  genvar k;
  generate
    for (k = 0; k < Y_WIDTH; k = k + 1) begin : place
      assign carry[k+1] = (first[k] & added[k]) | (X[k] & carry[k]);
    end
  endgenerate
endmodule
