// SPDX-License-Identifier: Apache-2.0

// What the operations of a tracer cost, by OpenTelemetry's SDK for Go: run by tests/bench/tracers.py, whose words and rules are those
// of tests/bench/tracers/spanprof.c. Go has no span that is active on a thread: "attach" makes the context that is handed on.
//
// usage: tracer CORE
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"
)

const (
	burst     = 1500
	group     = 50
	groupTime = 500 * time.Microsecond
)

type kind int

const (
	plain kind = iota
	recorded
	sustained
)

type operation struct {
	name string
	kind kind
	run  func(count int)
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracer:", err)
		os.Exit(1)
	}
	return value
}

var sink context.Context

func makeSpans(tracer trace.Tracer, parent context.Context, attributes bool, count int) {
	for range count {
		ctx, span := tracer.Start(parent, "GET /cart")
		sink = ctx
		if attributes {
			span.SetAttributes(attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 200))
		}
		span.End()
	}
}

func operations(tracer trace.Tracer) []operation {
	background := context.Background()
	carrier := propagation.MapCarrier{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
	propagator := propagation.TraceContext{}
	remote := propagator.Extract(background, carrier)
	_, kept := tracer.Start(remote, "kept")
	spans := func(parent context.Context, attributes bool) func(int) {
		return func(count int) { makeSpans(tracer, parent, attributes, count) }
	}
	return []operation{
		{"attach", plain, func(count int) {
			for range count {
				sink = trace.ContextWithSpan(background, kept)
			}
		}},
		{"span", recorded, spans(background, false)},
		{"span_sustained", sustained, spans(background, false)},
		{"span_2_attributes", recorded, spans(background, true)},
		{"span_2_attributes_sustained", sustained, spans(background, true)},
		{"span_unsampled", plain, spans(remote, false)},
		{"extract", plain, func(count int) {
			for range count {
				sink = propagator.Extract(background, carrier)
			}
		}},
		{"inject", plain, func(count int) {
			out := propagation.MapCarrier{}
			for range count {
				propagator.Inject(remote, out)
			}
		}},
	}
}

// inBursts empties the queue between bursts.
func inBursts(provider *sdk.TracerProvider, o operation, span time.Duration) (took time.Duration, count int) {
	for ; took < span; count += burst {
		begin := time.Now()
		o.run(burst)
		took += time.Since(begin)
		if o.kind == recorded {
			must(0, provider.ForceFlush(context.Background()))
		}
	}
	return
}

// atRate makes groups at a constant rate and waits for nothing.
func atRate(o operation, span time.Duration) (took time.Duration, count int) {
	for due := time.Now(); took < span; count += group {
		for time.Now().Before(due) {
		}
		due = due.Add(groupTime)
		begin := time.Now()
		o.run(group)
		took += time.Since(begin)
	}
	return
}

// pin moves the calling thread only: the runtime's others have been started, or are started from one that stays.
func pin(core int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core)
	must(0, unix.SchedSetaffinity(0, &set))
}

func main() {
	exporter := must(otlptracehttp.New(context.Background()))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	list := operations(provider.Tracer("bench"))
	pin(must(strconv.Atoi(os.Args[1])))
	fmt.Print("ready")
	for _, o := range list {
		fmt.Print(" ", o.name)
	}
	fmt.Println()
	made := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, ms, _ := strings.Cut(lines.Text(), " ")
		span := time.Duration(must(strconv.Atoi(ms))) * time.Millisecond
		for _, o := range list {
			if o.name != name {
				continue
			}
			run := func() (time.Duration, int) { return inBursts(provider, o, span) }
			if o.kind == sustained {
				run = func() (time.Duration, int) { return atRate(o, span) }
			}
			took, count := run()
			if o.kind != plain {
				made += count
			}
			fmt.Printf("%.2f\n", float64(took.Nanoseconds())/float64(count))
		}
	}
	must(0, provider.Shutdown(context.Background()))
	fmt.Println(made)
}
