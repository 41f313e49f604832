// SPDX-License-Identifier: Apache-2.0
//! A program with `tracing` as its tracer. Its spans are exported as before, here to standard output. Only the three lines marked below are new. They
//! add a profile whose samples are linked to these spans, on either of the two threads that run tasks. Try it:
//!
//!   SPANPROF_EXPORTER=file SPANPROF_FILE=rust cargo run --release --example cart
//!   spanprof flame rust.profiles.jsonl --span ID      # ID: a span id that was printed
use opentelemetry::trace::TracerProvider;
use std::time::Duration;
use tracing::{info_span, instrument, Instrument};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[inline(never)]
fn price_cart() -> f64 {
    (0..60_000_000).map(|i| f64::from(i).sqrt()).sum()
}

#[inline(never)]
fn render_page() -> f64 {
    (0..60_000_000).map(|i| f64::from(i).sin()).sum()
}

#[instrument(name = "GET /cart")]
async fn serve(cart: u32) {
    let total = async {
        tokio::time::sleep(Duration::from_millis(10)).await; // meanwhile the thread serves others; another thread may continue
        price_cart()
    };
    let total = total.instrument(info_span!("price")).await;
    println!("cart {cart}: {total} {}", render_page());
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    spanprof_tracing::start(); // (1)
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .with_span_processor(spanprof_tracing::Processor) // (2)
        .with_simple_exporter(opentelemetry_stdout::SpanExporter::default())
        .build();
    tracing_subscriber::registry()
        .with(tracing_opentelemetry::layer().with_tracer(provider.tracer("example")))
        .with(spanprof_tracing::Layer) // (3)
        .init();

    let carts: Vec<_> = (0..4).map(|cart| tokio::spawn(serve(cart))).collect();
    for cart in carts {
        cart.await.unwrap();
    }
}
