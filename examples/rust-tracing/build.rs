// SPDX-License-Identifier: Apache-2.0
//! Finds libspanprof by its spanprof.pc (PKG_CONFIG_PATH).
fn main() {
    pkg_config::Config::new().statik(false).probe("spanprof").expect("spanprof is not installed where PKG_CONFIG_PATH says");
}
