// SPDX-License-Identifier: Apache-2.0
//! What the operations of a tracer cost, by OpenTelemetry's SDK for Rust, and by `tracing` on top of it: run by tests/bench/tracers.py, whose
//! words and rules are those of tests/bench/tracers/spanprof.c.
//!
//! usage: tracer opentelemetry|tracing CORE

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

const BURST: u64 = 1500;
const GROUP: u64 = 50;
const GROUP_TIME: Duration = Duration::from_micros(500);
const NESTED: usize = 10;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Recorded,
    Sustained,
}

type Operation = (&'static str, Kind, Box<dyn Fn(u64)>);

fn remote() -> Context {
    Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from_hex("4bf92f3577b34da6a3ce929d0e0e4736").unwrap(),
        SpanId::from_hex("00f067aa0ba902b7").unwrap(),
        TraceFlags::default(),
        true,
        TraceState::default(),
    ))
}

fn attach(context: &Context, count: u64) {
    for _ in 0..count {
        drop(black_box(context.clone().attach()));
    }
}

fn make_span(tracer: &SdkTracer, parent: Option<&Context>, attributes: bool, count: u64) {
    for _ in 0..count {
        let span = match parent {
            Some(parent) => tracer.start_with_context("GET /cart", parent),
            None => tracer.start("GET /cart"),
        };
        let context = Context::current_with_span(span);
        let guard = context.clone().attach();
        if attributes {
            context.span().set_attribute(KeyValue::new("http.request.method", "GET"));
            context.span().set_attribute(KeyValue::new("http.response.status_code", 200));
        }
        drop(guard);
        context.span().end();
    }
}

fn opentelemetry_operations(provider: &SdkTracerProvider) -> Vec<Operation> {
    let tracer = provider.tracer("bench");
    let spans = || (provider.tracer("bench"), remote());
    let kept = Context::new().with_span(tracer.start("kept"));
    let other = Context::new().with_span(tracer.start("other"));
    let carrier = HashMap::from([(
        "traceparent".to_string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".to_string(),
    )]);
    let mut list: Vec<Operation> = Vec::new();
    let context = kept.clone();
    list.push(("attach", Kind::Plain, Box::new(move |n| attach(&context, n))));
    for (name, depth) in [("attach_below", 1), ("attach_at_depth_10", NESTED)] {
        let (kept, other) = (kept.clone(), other.clone());
        let run = move |n| {
            let mut below: Vec<_> = (0..depth).map(|_| other.clone().attach()).collect();
            attach(&kept, n);
            while below.pop().is_some() {}
        };
        list.push((name, Kind::Plain, Box::new(run)));
    }
    let pair = [other.clone(), kept.clone()];
    let nested = move |n| {
        for _ in 0..n / NESTED as u64 {
            let mut scopes: [Option<_>; NESTED] = std::array::from_fn(|i| Some(pair[i % 2].clone().attach()));
            for scope in scopes.iter_mut().rev() {
                drop(scope.take());
            }
        }
    };
    list.push(("attach_10_nested", Kind::Plain, Box::new(nested)));
    let out_of_order = move |n| {
        for _ in 0..n / 2 {
            let (first, second) = (kept.clone().attach(), other.clone().attach());
            drop(first);
            drop(second);
        }
    };
    list.push(("attach_out_of_order", Kind::Plain, Box::new(out_of_order)));
    for (name, kind) in [("span", Kind::Recorded), ("span_sustained", Kind::Sustained)] {
        let (tracer, _) = spans();
        list.push((name, kind, Box::new(move |n| make_span(&tracer, None, false, n))));
    }
    for (name, kind) in [("span_2_attributes", Kind::Recorded), ("span_2_attributes_sustained", Kind::Sustained)] {
        let (tracer, _) = spans();
        list.push((name, kind, Box::new(move |n| make_span(&tracer, None, true, n))));
    }
    let (tracer, parent) = spans();
    list.push(("span_unsampled", Kind::Plain, Box::new(move |n| make_span(&tracer, Some(&parent), false, n))));
    let propagator = TraceContextPropagator::new();
    let extract = move |n| {
        for _ in 0..n {
            black_box(propagator.extract_with_context(&Context::new(), black_box(&carrier)));
        }
    };
    list.push(("extract", Kind::Plain, Box::new(extract)));
    let (propagator, context) = (TraceContextPropagator::new(), remote());
    let inject = move |n| {
        let mut carrier: HashMap<String, String> = HashMap::new();
        for _ in 0..n {
            propagator.inject_context(black_box(&context), &mut carrier);
            black_box(&carrier);
        }
    };
    list.push(("inject", Kind::Plain, Box::new(inject)));
    list
}

/// A span of `tracing` starts, is entered and left, and ends: what `#[instrument]` does.
fn make_tracing_span(count: u64) {
    for _ in 0..count {
        let span = tracing::info_span!("GET /cart");
        drop(span.enter());
    }
}

fn make_tracing_span_2_attributes(count: u64) {
    for _ in 0..count {
        let span = tracing::info_span!("GET /cart", http.request.method = "GET", http.response.status_code = 200);
        drop(span.enter());
    }
}

fn tracing_operations(provider: &SdkTracerProvider) -> Vec<Operation> {
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("bench"))
        .with_location(false)
        .with_threads(false);
    let subscriber = tracing_subscriber::registry().with(layer);
    #[cfg(feature = "adapted")]
    let subscriber = subscriber.with(spanprof_tracing::Layer);
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let (kept, parent) = (tracing::info_span!("kept"), remote());
    let enter = move |n| {
        for _ in 0..n {
            drop(black_box(kept.enter()));
        }
    };
    let unsampled = move |n| {
        for _ in 0..n {
            let span = tracing::info_span!("GET /cart");
            let _ = span.set_parent(parent.clone());
            drop(span.enter());
        }
    };
    vec![
        ("attach", Kind::Plain, Box::new(enter)),
        ("span", Kind::Recorded, Box::new(make_tracing_span)),
        ("span_sustained", Kind::Sustained, Box::new(make_tracing_span)),
        ("span_2_attributes", Kind::Recorded, Box::new(make_tracing_span_2_attributes)),
        ("span_2_attributes_sustained", Kind::Sustained, Box::new(make_tracing_span_2_attributes)),
        ("span_unsampled", Kind::Plain, Box::new(unsampled)),
    ]
}

/// Bursts; between them the queue is emptied.
fn in_bursts(provider: &SdkTracerProvider, run: &dyn Fn(u64), span: Duration, records: bool) -> (Duration, u64) {
    let (mut took, mut count) = (Duration::ZERO, 0);
    while took < span {
        let begin = Instant::now();
        run(BURST);
        took += begin.elapsed();
        count += BURST;
        if records {
            provider.force_flush().unwrap();
        }
    }
    (took, count)
}

/// Groups at a constant rate, nothing waited for.
fn sustained(run: &dyn Fn(u64), span: Duration) -> (Duration, u64) {
    let (mut took, mut count, mut due) = (Duration::ZERO, 0, Instant::now());
    while took < span {
        while Instant::now() < due {}
        due += GROUP_TIME;
        let begin = Instant::now();
        run(GROUP);
        took += begin.elapsed();
        count += GROUP;
    }
    (took, count)
}

/// The calling thread only: those of the SDK have been started.
fn pin(core: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build().unwrap();
    let builder = SdkTracerProvider::builder();
    #[cfg(feature = "adapted")]
    let builder = builder.with_span_processor(spanprof_tracing::Processor);
    let provider = builder.with_batch_exporter(exporter).build();
    #[cfg(feature = "adapted")]
    spanprof_tracing::start();
    let operations = match arguments[1].as_str() {
        "tracing" => tracing_operations(&provider),
        _ => opentelemetry_operations(&provider),
    };
    provider.force_flush().unwrap();
    pin(arguments[2].parse().unwrap());
    let names: Vec<_> = operations.iter().map(|o| o.0).collect();
    println!("ready {}", names.join(" "));
    let mut made = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (name, ms) = line.split_once(' ').unwrap();
        let (_, kind, run) = operations.iter().find(|o| o.0 == name).unwrap();
        let span = Duration::from_millis(ms.parse().unwrap());
        let (took, count) = match kind {
            Kind::Sustained => sustained(run, span),
            _ => in_bursts(&provider, run, span, *kind == Kind::Recorded),
        };
        made += if *kind == Kind::Plain { 0 } else { count };
        println!("{:.2}", took.as_nanos() as f64 / count as f64);
        std::io::stdout().flush().unwrap();
    }
    provider.force_flush().unwrap();
    println!("{made}");
}
