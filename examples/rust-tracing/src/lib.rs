// SPDX-License-Identifier: Apache-2.0
//! spanprof with `tracing` and `tracing-opentelemetry`: samples of native stacks are linked to the span that was entered.
//!
//! ```ignore
//! spanprof_tracing::start();                                                  // at the beginning of main
//! let provider = builder.with_span_processor(spanprof_tracing::Processor).build();
//! registry().with(opentelemetry_layer).with(spanprof_tracing::Layer).init();  // after tracing-opentelemetry's
//! ```
//!
//! Two places are hooked. `tracing` calls the layer when a span is entered and exited, which is when a thread begins and stops working for the span: an
//! instrumented future enters its span at each poll, on the thread that polls. OpenTelemetry calls the span processor with all spans and
//! their parents, and the processor marks the spans that have a profile. docs/tracers/rust.md says what neither can see.

use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null;
use std::time::Duration;
use tracing::span::Id;
use tracing::Subscriber;

/// The calls of `<spanprof/sdk.h>`, `context.h` and `processor.h` that are used here.
mod c {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub struct Context {
        pub trace_id: [u8; 16],
        pub span_id: [u8; 8],
        pub local_root_span_id: [u8; 8],
        pub trace_flags: u8,
        pub remote: u8,
        pub reserved0: [u8; 6],
        pub carrier: [u32; 2],
        pub reserved1: [u8; 16],
    }

    #[repr(C)]
    pub struct Scope {
        pub thread: u32,
        pub depth: u32,
        pub serial: u64,
    }

    #[repr(C)]
    pub struct Attribute {
        pub key: *const c_char,
        pub kind: c_int,
        pub count: u32,
        pub value: *const c_void,
    }

    #[repr(C)]
    pub struct StartAttributes {
        pub struct_size: u32,
        pub count: u32,
        pub items: [Attribute; 4],
        pub text: [c_char; 64],
    }

    extern "C" {
        pub fn spanprof_start(options: *const c_void, error: *mut c_void) -> c_int;
        pub fn spanprof_context_attach(context: *const Context) -> Scope;
        pub fn spanprof_scope_detach(scope: *mut Scope) -> c_int;
        pub fn spanprof_processor_on_start(
            context: *const Context,
            parent: *const Context,
            name: *const c_char,
            time_ns: u64,
            out: *mut StartAttributes,
        );
        pub fn spanprof_processor_on_end(context: *const Context, time_ns: u64);
    }
}

/// Start sampling and sending, with the settings of the environment. False when the SDK does not start; a message on standard error then says why.
/// The program's spans work in both cases.
pub fn start() -> bool {
    unsafe { c::spanprof_start(null(), std::ptr::null_mut()) == 0 }
}

fn context_of(span: &SpanContext) -> c::Context {
    c::Context {
        trace_id: span.trace_id().to_bytes(),
        span_id: span.span_id().to_bytes(),
        trace_flags: span.trace_flags().to_u8(),
        remote: span.is_remote().into(),
        ..Default::default()
    }
}

thread_local! {
    /// The spans that this thread has entered, innermost last, and their scopes. A span may be in the list twice.
    static SCOPES: RefCell<Vec<(Id, c::Scope)>> = const { RefCell::new(Vec::new()) };
}

/// Tells spanprof which span a thread works for. Add it after tracing-opentelemetry's layer, because that layer makes the span's context current
/// when the span is entered (unless `with_context_activation(false)`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Layer;

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_enter(&self, id: &Id, _: tracing_subscriber::layer::Context<'_, S>) {
        let context = Context::map_current(|current| context_of(current.span().span_context()));
        // A thread that is ending may have no SCOPES any more. Then its last samples have no span.
        let _ = SCOPES.try_with(|scopes| {
            let scope = unsafe { c::spanprof_context_attach(&context) };
            scopes.borrow_mut().push((id.clone(), scope));
        });
    }

    fn on_exit(&self, id: &Id, _: tracing_subscriber::layer::Context<'_, S>) {
        let _ = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            // Not always the last one, because guards may be dropped in any order. spanprof allows any order, too.
            if let Some(index) = scopes.iter().rposition(|(entered, _)| entered == id) {
                let (_, mut scope) = scopes.remove(index);
                unsafe { c::spanprof_scope_detach(&mut scope) };
            }
        });
    }
}

/// Tells spanprof which spans there are, and gives those that have a profile the attribute `pyroscope.profile.id`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processor;

impl SpanProcessor for Processor {
    fn on_start(&self, span: &mut Span, parent: &Context) {
        use opentelemetry::trace::Span as _;
        let context = context_of(span.span_context());
        let parent = parent.has_active_span().then(|| context_of(parent.span().span_context()));
        let name = span.exported_data().and_then(|data| CString::new(data.name.as_ref()).ok()).unwrap_or_default();
        let mut add: c::StartAttributes = unsafe { std::mem::zeroed() };
        add.struct_size = size_of::<c::StartAttributes>() as u32;
        let parent = parent.as_ref().map_or(null(), |parent| parent as *const _);
        unsafe { c::spanprof_processor_on_start(&context, parent, name.as_ptr(), 0, &mut add) };
        if add.count > 0 {
            span.set_attribute(KeyValue::new("pyroscope.profile.id", span.span_context().span_id().to_string()));
        }
    }

    fn on_end(&self, span: SpanData) {
        unsafe { c::spanprof_processor_on_end(&context_of(&span.span_context), 0) };
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
