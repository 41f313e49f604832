// SPDX-License-Identifier: Apache-2.0
//! Spans of `tracing` in all the ways in which they are entered, each with work of its own; rust_test.py asks where the samples went. Prints a line
//! for each span: trace id, span id, work.
//!
//! usage: truth SECONDS (of CPU time)
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, SdkTracerProvider, ShouldSample, SpanData, SpanExporter};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::Duration;
use tracing::{info_span, Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const PIECE_NS: u64 = 400_000;

extern "C" {
    fn truth_run(work: u32, ns: u64);
    fn truth_run_nothing(ns: u64);
    fn truth_cpu_ns() -> u64;
}

fn run(work: u32) {
    unsafe { truth_run(work, PIECE_NS) }
}

fn run_nothing() {
    unsafe { truth_run_nothing(PIECE_NS) }
}

/// A span and the number of its work, told on standard output.
fn start() -> (Span, u32) {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let work = LAST.fetch_add(1, Relaxed) % 64;
    let span = info_span!("work");
    let context = span.context();
    let ids = context.span().span_context().clone();
    println!("span {} {} {work}", ids.trace_id(), ids.span_id());
    (span, work)
}

/// Spans named "unsampled" are not sampled.
#[derive(Debug, Clone)]
struct ByName;

impl ShouldSample for ByName {
    fn should_sample(
        &self,
        _: Option<&Context>,
        _: TraceId,
        name: &str,
        _: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        let decision = if name == "unsampled" { SamplingDecision::Drop } else { SamplingDecision::RecordAndSample };
        SamplingResult { decision, attributes: Vec::new(), trace_state: TraceState::NONE }
    }
}

/// Which spans have pyroscope.profile.id, and what it is.
#[derive(Debug)]
struct Marks;

static MARKS: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);

impl SpanExporter for Marks {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let mut marks = MARKS.lock().unwrap();
        for span in spans {
            let mark = span.attributes.iter().find(|attribute| attribute.key.as_str() == "pyroscope.profile.id");
            if let Some(mark) = mark {
                marks.get_or_insert_default().insert(span.span_context.span_id().to_string(), mark.value.to_string());
            }
        }
        Ok(())
    }
}

// --- the ways -------------------------------------------------------------------------------------------------------------

fn nested() {
    let (outer, work) = start();
    outer.in_scope(|| {
        run(work);
        let (inner, inner_work) = start();
        inner.in_scope(|| run(inner_work));
        run(work);
        outer.in_scope(|| run(work)); // entered twice
        run(work);
    });
    run_nothing();
}

fn guards_out_of_order() {
    let ((first, first_work), (second, second_work)) = (start(), start());
    let first_guard = first.enter();
    run(first_work);
    let second_guard = second.enter();
    run(second_work);
    drop(first_guard);
    run(second_work);
    drop(second_guard);
    run_nothing();
}

/// One span on two threads at the same time, and its last handle dropped there.
fn on_two_threads() {
    let (span, work) = start();
    let other = span.clone();
    let thread = std::thread::spawn(move || other.in_scope(|| run(work)));
    span.in_scope(|| run(work));
    drop(span);
    thread.join().unwrap();
}

fn not_here() {
    let (outer, work) = start();
    outer.in_scope(|| {
        info_span!("unsampled").in_scope(run_nothing);
        run(work);
    });
    let remote = SpanContext::new(TraceId::from(1), SpanId::from(2), TraceFlags::SAMPLED, true, TraceState::NONE);
    let _guard = Context::new().with_remote_span_context(remote).attach();
    run_nothing();
}

/// Goes to sleep, and to the end of the queue, between pieces, so that others run meanwhile and another thread goes on.
async fn task(depth: u32) {
    let (span, work) = start();
    let body = async move {
        for i in 0..4 {
            run(work);
            if i % 2 == 0 {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
        if depth > 0 {
            Box::pin(task(depth - 1)).await;
            run(work);
        }
    };
    body.instrument(span).await;
}

async fn blocking() {
    let (span, work) = start();
    let inner = span.clone();
    tokio::task::spawn_blocking(move || inner.in_scope(|| run(work))).await.unwrap();
    async { run(work) }.instrument(span).await;
}

async fn all_ways() {
    nested();
    guards_out_of_order();
    on_two_threads();
    not_here();
    task(2).await;
    run_nothing();
    blocking().await;
}

fn print_marks(provider: &SdkTracerProvider) {
    let (root, _) = start();
    let child = root.in_scope(|| start().0);
    let ids = [root.context().span().span_context().span_id(), child.context().span().span_context().span_id()];
    drop((child, root));
    provider.force_flush().unwrap();
    let marks = MARKS.lock().unwrap().take().unwrap_or_default();
    for (id, mark) in &marks {
        if id != mark {
            println!("marks wrong: {id} has {mark}");
        }
    }
    let has = |id: SpanId, name| if marks.contains_key(&id.to_string()) { name } else { "" };
    println!("marks{}{}", has(ids[0], " root"), has(ids[1], " child"));
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    assert!(spanprof_tracing::start());
    let provider = SdkTracerProvider::builder()
        .with_sampler(ByName)
        .with_span_processor(spanprof_tracing::Processor)
        .with_simple_exporter(Marks)
        .build();
    tracing_subscriber::registry()
        .with(tracing_opentelemetry::layer().with_tracer(provider.tracer("truth")))
        .with(spanprof_tracing::Layer)
        .init();
    let end_ns = unsafe { truth_cpu_ns() } + (seconds * 1e9) as u64;
    let workers: Vec<_> = (0..6)
        .map(|_| {
            tokio::spawn(async move {
                while unsafe { truth_cpu_ns() } < end_ns {
                    all_ways().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    print_marks(&provider);
}
