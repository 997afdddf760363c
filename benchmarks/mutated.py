"""The sources whose mutants `benchmarks/mutants.py` runs, and their tests."""

from collections.abc import Iterator, Mapping, Sequence

MODELS = [
    f"golden/check/test_formats.py::test_the_model_passes[{name}]"
    for name in (
        *("axs6-even", "mx6-ceil", "int4_e8m0_t16s4o2s2o1", "e3m2fnuz_ue6m2inuz_t16"),
        "table5:0:2:-1:-8:-3:9:1_u4_t16_float32_t0",
    )
]
"""Both models compared over small formats of each kind."""

MORE_MODELS = [
    *MODELS,
    "golden/check/test_formats.py::test_the_model_passes[uint8_float32_uint8_t0]",
    "golden/check/test_formats.py::test_the_model_passes[e3m2fn_e4m3fn_t16s2o1_float32_t0]",
    "golden/check/test_formats.py::test_infinities_that_become_nan_are_caught",
]
EXACT_DOTS = [
    "golden/test_scaled.py",
    "golden/test_vectors.py::test_both_models_give_the_outputs[accumulators]",
    "golden/check/test_dot.py::test_the_model_passes[int4_e8m0_t16s4o2s2o1]",
]
CHECKS = [
    f"golden/check/test_validate.py::test_{name}"
    for name in (
        "the_model_passes",
        "a_wrong_mode_is_caught",
        "rounding_up_one_word_late_is_caught",
        "wrong_divider_is_caught",
        "wrong_packing_is_caught",
        "wrong_dot_product_is_caught",
        "a_wrong_decoder_of_high_precision_is_caught",
        "dropping_the_last_zeros_is_caught",
        "seed_and_progress",
        "wrong_accumulation_is_caught",
        "wrong_adder_is_caught",
        "wrong_decoder_is_caught",
        "wrong_encoder_is_caught",
        "wrong_matmul_is_caught",
        "dot_products_of_other_formats_are_checked_too",
        "cases_grow_with_blocks",
        "samples",
        "names",
    )
]
FORMAT_CHECKS = [
    f"golden/check/test_formats.py::test_{name}"
    for name in (
        "wrong_bytes_are_caught",
        "a_wrong_decoder_is_caught",
        "a_wrong_encoder_is_caught",
        "a_wrong_rule_is_caught",
        "accepting_what_has_no_code_is_caught",
        "encoding_through_float32_is_caught",
        "infinities_that_become_nan_are_caught",
    )
]
EXACT = [f"golden/check/exact/test_{name}.py" for name in ("formats", "dot", "floats", "sequences")]
SUMS = [
    f"golden/test_sums.py::test_{name}"
    for name in (
        "zeros_of_tensor_cores",
        "products_are_not_normalised",
        "small_terms_are_truncated_toward_zero",
        "zeros_have_an_exponent_in_floor_alone",
        "an_accumulator_of_zero_counts_in_floor_alone",
        "the_accumulator_is_one_of_the_terms",
        "steps_of_ada_and_hopper",
        "e8m13_is_truncated",
        "sixteen_lanes_of_zero_count",
        "sixteen_lanes_are_added_exactly",
        "overflow",
        "fp16_output",
        "blocked_along_the_first_axis",
        "what_does_not_fit",
        "zeros_of_tensor_cores_have_an_exponent",
        "terms_of_zeros_of_tensor_cores",
        "nan_scales",
        "other_accumulators",
        "other_formats",
        "terms_wider_than_an_integer_of_numpy",
        "every_format[mx9-mx9]",
        "every_format[mxfp4-axs6]",
    )
]
SPECIALS = [
    f"golden/test_sums.py::test_infinities_and_nan[{name}]"
    for name in ("a2-b2-2139095040", "a4-b4-None", "a8-b8-None")
]
VECTORS = [
    f"golden/test_vectors.py::test_{name}"
    for name in (
        "encoding_is_covered",
        "decoding_is_covered",
        "faults_are_covered",
        "products_are_covered",
        "no_case_is_there_twice",
        "the_command",
        "the_generator_writes_the_committed_file",
        "one_wrong_character_is_found_in_every_output",
        "lines_that_are_no_cases_are_named",
        "nothing_is_written_where_the_models_differ",
        "bad_arguments_of_the_command",
        "an_error_that_is_no_fault_of_bytes_is_raised",
        "both_models_give_the_outputs",
    )
]
FORMATS = [
    "golden/test_formats.py",
    "golden/test_format_strings.py",
    "golden/test_block_formats.py",
]
BLOCKS = ["golden/test_blocks.py", "golden/test_block_formats.py"]
PACKED = ["golden/test_pack.py", "golden/test_planar.py"]
ENCODED = ["golden/test_encode.py", "golden/test_decode.py", "golden/test_block_formats.py"]
DOTS = ["golden/test_dot.py", "golden/test_real_terms.py", "golden/test_scaled.py"]
FACTORS = [
    "golden/test_outer.py",
    "golden/test_tiles.py",
    "golden/test_choice.py",
    "golden/test_hif4.py",
]

GOLDEN: Mapping[str, Sequence[str]] = {
    "accumulator": [
        "golden/check/test_dot.py::test_every_named_accumulator_is_compared",
        "golden/test_accumulator.py",
        *DOTS,
        *SUMS[:12],
        "golden/test_matrix_cores.py",
    ],
    "arguments": [
        "golden/test_arguments.py",
        "golden/test_blocks.py",
        "golden/test_encode.py",
        "golden/test_decode.py",
    ],
    "bits": ["golden/test_bits.py"],
    "blocks": ["golden/test_blocks.py", *PACKED, "golden/test_tiles.py", *ENCODED],
    "choice": ["golden/test_choice.py", "golden/test_tables.py"],
    "decode": ["golden/test_decode.py", *BLOCKS, "golden/test_outer.py", *MODELS],
    "dot": [*DOTS, "golden/test_matrix_cores.py", *SUMS],
    "encode": [
        "golden/test_encode.py",
        *BLOCKS,
        "golden/test_outer.py",
        "golden/test_selected.py",
        *MODELS,
    ],
    "encode_as": ["golden/test_profile.py"],
    "explain": ["golden/test_explain.py"],
    "explain_profile": ["golden/test_explain_profile.py"],
    "factors": [*FACTORS, *MORE_MODELS],
    "feedback": ["golden/test_feedback.py", "golden/test_blocks.py"],
    "finite": [
        "golden/test_selected.py",
        "golden/test_choice.py",
        "golden/test_outer.py",
        *FORMATS,
        *MODELS,
    ],
    "floats": ["golden/test_floats.py", "golden/test_fp32.py", *ENCODED],
    "fp32": ["golden/test_fp32.py", *DOTS, *SUMS],
    "hadamard": ["golden/test_hadamard.py"],
    "kulisch": [*DOTS, "golden/test_accumulator.py", *SUMS],
    "levels": [*FACTORS, "golden/test_tables.py", *ENCODED, *MODELS],
    "lfsr": ["golden/test_lfsr.py"],
    "metrics": ["golden/test_metrics.py", "golden/test_bound.py"],
    "modes": [
        "golden/test_encode.py",
        "golden/test_blocks.py",
        "golden/test_pack.py",
        "golden/test_decode.py",
    ],
    "nonfinite": ["golden/test_outer.py", "golden/test_encode.py", *BLOCKS],
    "operands": [*DOTS, *SUMS],
    "outer": ["golden/test_outer.py", "golden/test_tiles.py", *BLOCKS, *MODELS],
    "pack": [*PACKED, *BLOCKS],
    "planar": ["golden/test_planar.py"],
    "profile": ["golden/test_profile.py"],
    "profile_scales": ["golden/test_profile.py"],
    "quantise": [*ENCODED, *MODELS],
    "rounding": ["golden/test_encode.py", "golden/test_accumulator.py"],
    "rows": ["sim/test_rows.py"],
    "scale_factor": [
        *DOTS,
        "golden/check/test_dot.py::test_the_model_passes[e2m1fn_e5m2_t32_float32_t0]",
    ],
    "scaling": [*ENCODED, *FACTORS, *MODELS],
    "selection": ["golden/test_selected.py"],
    "sums": ["golden/test_matrix_cores.py", *SUMS, *DOTS],
    "tables": ["golden/test_tables.py", "golden/test_floats.py", *ENCODED, *MODELS],
    "terms": ["golden/test_matrix_cores.py", *DOTS, *SUMS, *SPECIALS],
    "unpack": [*PACKED, *BLOCKS],
    "vectors/accumulators": VECTORS,
    "vectors/decoding": VECTORS,
    "vectors/encoding": VECTORS,
    "vectors/products": VECTORS,
    "vectors/sequences": VECTORS,
}
IN_FORMATS = (
    *("block_format", "catalog", "checks", "codes", "element", "floating", "modes", "names"),
    *("scale", "selected", "spelling", "table"),
)
IN_FORMATS_MORE = {
    "modes": ["golden/test_encode.py", "golden/test_pack.py", "golden/test_decode.py"],
    "names": [
        "golden/test_selected.py",
        "cli/test_options.py::test_formats_come_with_commas_or_one_by_one",
    ],
    "scale": ["golden/test_explain.py", "golden/test_outer.py"],
    "table": ["golden/test_catalog.py", "golden/test_tables.py", "golden/test_choice.py"],
}
IN_EXACT = (
    *("accumulator", "arithmetic", "axs6", "blocks", "dot", "encode", "floats", "formats"),
    *("hadamard", "rounding", "scales", "sequences", "step"),
)
IN_EXACT_FIRST = {
    "axs6": "golden/check/exact/test_axs6.py",
    "accumulator": "golden/test_accumulator.py",
    "arithmetic": "golden/check/exact/test_arithmetic.py",
}
CHECKED: Mapping[str, Sequence[str]] = {
    "comparison": [
        "golden/check/test_comparison.py",
        "golden/test_choice.py",
        *FORMAT_CHECKS,
        *CHECKS,
    ],
    "decode": [
        "golden/check/test_validate.py::test_every_code_is_decoded_at_every_exponent",
        *CHECKS,
    ],
    "dot": [
        *CHECKS,
        "golden/test_scaled.py",
        "golden/check/test_dot.py::test_a_wrong_block_product_is_caught",
        "golden/check/test_dot.py::test_every_named_accumulator_is_compared",
        *(
            f"golden/check/test_dot.py::test_the_model_passes[{name}]"
            for name in ("int4_e8m0_t16s4o2s2o1", "axs6", "axs6-even", "mx9-rceil", "mx6-ceil")
        ),
    ],
    "encode": CHECKS,
    "formats": [*FORMAT_CHECKS, *MODELS],
    "subjects": [*FORMAT_CHECKS, *MORE_MODELS, "golden/test_scaled.py"],
    "sums": CHECKS,
    "validate": CHECKS,
    "cases/dot": [*CHECKS, "golden/test_scaled.py"],
    "cases/formats": [*FORMAT_CHECKS, *CHECKS, *MODELS],
    "cases/fp32": ["golden/test_fp32.py", *CHECKS],
    "cases/inputs": ["golden/check/cases/test_inputs.py", *FORMAT_CHECKS],
}
PROOF: Mapping[str, Sequence[str]] = {
    "adders": ["proof/test_adders.py", "proof/test_aig.py"],
    "aig": ["proof/test_aig.py", "proof/test_adders.py", "proof/test_split.py"],
    "cases": ["proof/test_cases.py", "proof/test_aig.py", "proof/test_split.py"],
    "solver": ["proof/test_solver.py", "proof/test_split.py"],
    "split": ["proof/test_split.py"],
    "stream": ["proof/test_stream.py"],
    "colours": ["proof/test_stream.py"],
    "abc": ["proof/test_stream.py"],
    "yosys": ["proof/test_aig.py", "proof/test_stream.py"],
    "truncations": ["proof/test_truncations.py"],
    "places": ["proof/test_truncations.py"],
    "block_dot": ["proof/test_block_dot.py"],
    "scales": ["proof/test_block_dot.py"],
    "sums": ["proof/test_block_dot.py", "proof/test_adders.py"],
    "nested_sums": ["proof/test_block_dot.py"],
    "vectors": ["proof/test_vectors.py"],
    "buses": ["proof/test_buses.py"],
    "windows": ["proof/test_windows.py"],
    "same_queue": ["proof/test_same_queue.py"],
    "totals": ["proof/test_same_queue.py", "proof/test_mutants.py"],
    "cycles": ["proof/test_same_queue.py", "proof/test_mutants.py"],
    "verdicts": ["proof/test_same_queue.py", "proof/test_mutants.py"],
    "shown": ["proof/test_shown.py"],
}
BENCH: Mapping[str, Sequence[str]] = {
    "checker": ["sim/test_checker.py"],
    "axis": [
        "sim/test_axis_bus.py",
        "sim/test_axis.py::test_beats_of_blocks_are_their_packed_bytes",
    ],
}


def _all() -> Iterator[tuple[str, Sequence[str]]]:
    for name, tests in GOLDEN.items():
        yield f"golden/{name}.py", tests
    for name in IN_FORMATS:
        more = IN_FORMATS_MORE.get(name, ["golden/test_selected.py"])
        yield f"golden/formats/{name}.py", [*FORMATS, *more, *MODELS[:1]]
    for name, tests in CHECKED.items():
        yield f"golden/check/{name}.py", tests
    for name in IN_EXACT:
        first = IN_EXACT_FIRST.get(name, EXACT[0])
        more = EXACT_DOTS if name in ("dot", "step") else MORE_MODELS
        yield f"golden/check/exact/{name}.py", [first, *EXACT, "golden/test_hadamard.py", *more]
    for name, tests in PROOF.items():
        yield f"proof/{name}.py", tests
    for name, tests in BENCH.items():
        yield f"sim/bench/{name}.py", tests


TESTS: Mapping[str, Sequence[str]] = {
    name: [f"tests/{test}" for test in dict.fromkeys(tests)] for name, tests in _all()
}
"""Arguments of pytest for each source: quick tests, those that find most first."""
