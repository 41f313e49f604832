// SPDX-License-Identifier: Apache-2.0
//! The works that stacks are told by: the same functions as in C.
fn main() {
    println!("cargo:rerun-if-changed=../work.c");
    cc::Build::new().file("../work.c").include("../../..").opt_level(2).debug(true).define("_GNU_SOURCE", None).compile("work");
}
