// SPDX-License-Identifier: Apache-2.0

// Makes the calls of a table (calls.txt says how it reads) through OpenTelemetry's own SDK for Go, writes what it exports as one
// protobuf request, and prints which span of the table has which ids. Or prints which ratio samples which trace.
//
// usage: api_calls TABLE OUT
//
//	api_calls ratios RATIO… < TRACE_IDS
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "api_calls:", err)
		os.Exit(1)
	}
	return value
}

// NotFound is an error whose type exporters call main.NotFound.
type NotFound struct{ text string }

func (e NotFound) Error() string { return e.text }

// keeper is an exporter's way out that keeps everything.
type keeper struct {
	request collector.ExportTraceServiceRequest
}

func (*keeper) Start(context.Context) error { return nil }
func (*keeper) Stop(context.Context) error  { return nil }
func (k *keeper) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	k.request.ResourceSpans = append(k.request.ResourceSpans, spans...)
	return nil
}

// expand turns *N, a text that is too long for a table, into N letters.
func expand(text string) string {
	if number, found := strings.CutPrefix(text, "*"); found {
		return strings.Repeat("x", must(strconv.Atoi(number)))
	}
	return text
}

func elements[T any](list string, parse func(string) (T, error)) []T {
	values := []T{}
	if list != "" {
		for _, text := range strings.Split(list, ",") {
			values = append(values, must(parse(text)))
		}
	}
	return values
}

func parseInt(text string) (int64, error)     { return strconv.ParseInt(text, 10, 64) }
func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseString(text string) (string, error) { return expand(text), nil }

func parseAttribute(kind, key, value string) attribute.KeyValue {
	key = expand(key)
	switch kind {
	case "string":
		return attribute.String(key, expand(value))
	case "int":
		return attribute.Int64(key, must(parseInt(value)))
	case "double":
		return attribute.Float64(key, must(parseFloat(value)))
	case "bool":
		return attribute.Bool(key, must(strconv.ParseBool(value)))
	case "strings":
		return attribute.StringSlice(key, elements(value, parseString))
	case "ints":
		return attribute.Int64Slice(key, elements(value, parseInt))
	case "doubles":
		return attribute.Float64Slice(key, elements(value, parseFloat))
	case "bools":
		return attribute.BoolSlice(key, elements(value, strconv.ParseBool))
	}
	panic("no such type: " + kind)
}

func parseAttributes(fields []string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for ; len(fields) >= 3; fields = fields[3:] {
		list = append(list, parseAttribute(fields[0], fields[1], fields[2]))
	}
	return list
}

type caller struct {
	provider *sdk.TracerProvider
	tracers  map[string]trace.Tracer
	spans    map[string]trace.Span
	contexts map[string]trace.SpanContext
}

func parseTime(text string) time.Time { return time.Unix(0, must(parseInt(text))) }

func (c *caller) start(name string, fields []string) {
	tracer, title, kind, parent, start := fields[0], fields[1], fields[2], fields[3], fields[4]
	kinds := map[string]trace.SpanKind{"internal": trace.SpanKindInternal, "server": trace.SpanKindServer,
		"client": trace.SpanKindClient, "producer": trace.SpanKindProducer, "consumer": trace.SpanKindConsumer}
	options := []trace.SpanStartOption{trace.WithAttributes(parseAttributes(fields[5:])...)}
	if kind != "" {
		options = append(options, trace.WithSpanKind(kinds[kind]))
	}
	if start != "" {
		options = append(options, trace.WithTimestamp(parseTime(start)))
	}
	parentContext := context.Background()
	if parent != "" {
		parentContext = trace.ContextWithSpanContext(parentContext, c.contexts[parent])
	}
	_, span := c.tracers[tracer].Start(parentContext, expand(title), options...)
	c.spans[name] = span
	c.contexts[name] = span.SpanContext()
	fmt.Println("span", name, span.SpanContext().TraceID(), span.SpanContext().SpanID())
}

func (c *caller) remote(name string, fields []string) {
	flags := must(strconv.ParseUint(fields[2], 16, 8))
	c.contexts[name] = trace.NewSpanContext(trace.SpanContextConfig{TraceID: must(trace.TraceIDFromHex(fields[0])),
		SpanID: must(trace.SpanIDFromHex(fields[1])), TraceFlags: trace.TraceFlags(flags), Remote: true})
}

func (c *caller) status(span trace.Span, fields []string) {
	span.SetStatus(map[string]codes.Code{"unset": codes.Unset, "ok": codes.Ok, "error": codes.Error}[fields[0]], fields[1])
}

func eventOptions(when string, attributes []string) []trace.EventOption {
	options := []trace.EventOption{trace.WithAttributes(parseAttributes(attributes)...)}
	if when != "" {
		options = append(options, trace.WithTimestamp(parseTime(when)))
	}
	return options
}

func (c *caller) call(fields []string) {
	name, rest := fields[1], fields[2:]
	span := c.spans[name]
	switch fields[0] {
	case "tracer":
		c.tracers[name] = c.provider.Tracer(rest[0], trace.WithInstrumentationVersion(rest[1]), trace.WithSchemaURL(rest[2]),
			trace.WithInstrumentationAttributes(parseAttributes(rest[3:])...))
	case "remote":
		c.remote(name, rest)
	case "start":
		c.start(name, rest)
	case "attribute":
		span.SetAttributes(parseAttributes(rest)...)
	case "event":
		span.AddEvent(expand(rest[0]), eventOptions(rest[1], rest[2:])...)
	case "error":
		span.RecordError(NotFound{rest[0]}, eventOptions(rest[1], rest[2:])...)
	case "link":
		span.AddLink(trace.Link{SpanContext: c.contexts[rest[0]], Attributes: parseAttributes(rest[1:])})
	case "status":
		c.status(span, rest)
	case "name":
		span.SetName(expand(rest[0]))
	case "recording":
		fmt.Println("recording", name, span.IsRecording())
	case "end":
		if rest[0] == "" {
			span.End()
		} else {
			span.End(trace.WithTimestamp(parseTime(rest[0])))
		}
	default:
		panic("no such call: " + fields[0])
	}
}

// ratios prints y or n for each ratio of the command line, a line for each trace id of the standard input.
func ratios() {
	var samplers []sdk.Sampler
	for _, text := range os.Args[2:] {
		samplers = append(samplers, sdk.TraceIDRatioBased(must(parseFloat(text))))
	}
	ids := bufio.NewScanner(os.Stdin)
	for ids.Scan() {
		parameters := sdk.SamplingParameters{ParentContext: context.Background(), TraceID: must(trace.TraceIDFromHex(ids.Text()))}
		for _, sampler := range samplers {
			if sampler.ShouldSample(parameters).Decision == sdk.RecordAndSample {
				fmt.Print("y")
			} else {
				fmt.Print("n")
			}
		}
		fmt.Println()
	}
}

func main() {
	if os.Args[1] == "ratios" {
		ratios()
		return
	}
	out := &keeper{}
	exporter := must(otlptrace.New(context.Background(), out))
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	c := caller{provider, map[string]trace.Tracer{"": provider.Tracer("")}, map[string]trace.Span{},
		map[string]trace.SpanContext{"nothing": {}}}
	table := bufio.NewScanner(must(os.Open(os.Args[1])))
	for table.Scan() {
		if line := table.Text(); line != "" && line[0] != '#' {
			c.call(strings.Split(line, "|"))
		}
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Args[2], must(proto.Marshal(&out.request)), 0o666); err != nil {
		panic(err)
	}
}
