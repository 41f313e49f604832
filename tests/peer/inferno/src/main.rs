// SPDX-License-Identifier: Apache-2.0
//! Folded stacks on standard input become inferno's svg on standard output.
use std::io;

fn main() {
    let mut options = inferno::flamegraph::Options::default();
    options.min_width = 0.0;
    options.count_name = "units".to_string();
    inferno::flamegraph::from_reader(&mut options, io::stdin().lock(), io::stdout().lock()).expect("inferno draws it");
}
