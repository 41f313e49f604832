// SPDX-License-Identifier: Apache-2.0
// Closures, iterators, dynamic dispatch, collections, formatting, panics that are caught (through frames with values to drop),
// threads. For ever.
use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::sync::mpsc;
use std::thread;

trait Shape {
    fn area(&self, round: u64) -> u64;
}

struct Square(u64);
struct Circle(f64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, round: u64) -> u64 {
        self.0.wrapping_mul(self.0) ^ round
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self, round: u64) -> u64 {
        (self.0.powi(2) * std::f64::consts::PI).sin().abs().to_bits() ^ round
    }
}

struct Noisy(u64);

impl Drop for Noisy {
    #[inline(never)]
    fn drop(&mut self) {
        std::hint::black_box((0..50).fold(self.0, |a, b| a ^ (b * 31)));
    }
}

#[inline(never)]
fn panic_deep(depth: u64) -> u64 {
    let guard = Noisy(depth);
    if depth == 0 {
        panic::resume_unwind(Box::new(7u64));
    }
    panic_deep(depth - 1) + guard.0
}

#[inline(never)]
fn catch_panics(round: u64) -> u64 {
    let first = panic::catch_unwind(|| panic_deep(round % 25)).unwrap_err();
    let numbers: Vec<u64> = (0..3).collect();
    let second = panic::catch_unwind(|| numbers[(round % 2 + 2) as usize..][1]);
    *first.downcast::<u64>().unwrap() + second.unwrap_or(1)
}

#[inline(never)]
fn use_collections(round: u64) -> usize {
    let mut words: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..200u64 {
        words.entry(format!("word {:x} {:.3}", i * round % 17, i as f64 / 7.0)).or_default().push(i);
    }
    let sorted: BTreeMap<_, _> = words.iter().map(|(word, at)| (word.as_str(), at.iter().sum::<u64>())).collect();
    let mut by_sum: Vec<_> = sorted.into_iter().filter(|(word, _)| word.contains('1')).collect();
    by_sum.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    by_sum.iter().flat_map(|(word, _)| word.split(' ')).filter_map(|part| part.parse::<f64>().ok()).count()
}

fn recurse(depth: u64, f: &dyn Fn(u64) -> u64) -> u64 {
    if depth == 0 {
        return f(1);
    }
    recurse(depth - 1, &|x| f(x).wrapping_add(depth))
}

fn work(seed: u64) {
    let shapes: Vec<Box<dyn Shape>> = (0..20u64)
        .map(|i| if i % 2 == 0 { Box::new(Square(i)) as Box<dyn Shape> } else { Box::new(Circle(i as f64)) })
        .collect();
    for round in seed.. {
        let areas = shapes.iter().map(|shape| shape.area(round)).fold(0u64, u64::wrapping_add);
        std::hint::black_box(areas ^ catch_panics(round) ^ use_collections(round) as u64 ^ recurse(30, &|x| x * round));
    }
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let (send, receive) = mpsc::channel::<u64>();
    for seed in 0..2 {
        let send = send.clone();
        thread::spawn(move || {
            work(seed + 1);
            send.send(seed).unwrap();
        });
    }
    loop {
        let short = thread::spawn(|| use_collections(3));
        short.join().unwrap();
        let _ = receive.recv_timeout(std::time::Duration::from_millis(5));
    }
}
