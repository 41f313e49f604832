// SPDX-License-Identifier: Apache-2.0

// From samples to bytes with what others use: the Collector's pdata for OTLP, and google/pprof's profile package for pprof, whose samples carry
// their span as labels. The content is that of bench_requests (-c). Both get what costs them nothing here and us a part of the time: they know
// which samples have the same stack, and nothing is aggregated. Prints samples a second of CPU time, garbage collection included where it happens,
// of the best round, and bytes a sample before and after gzip at level 6.
//
//	peers CONTENT [ROUNDS]
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

type sample struct {
	stack   int32
	traceID [16]byte
	spanID  [8]byte
	time    uint64
}

type content struct {
	stacks  [][]uint64
	names   map[uint64]string
	samples []sample
}

const start = 1700000000000000000

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func readStack(c *content, line string) {
	var stack []uint64
	for _, field := range strings.Fields(line) {
		address, err := strconv.ParseUint(field, 16, 64)
		fail(err)
		if _, known := c.names[address]; !known {
			c.names[address] = fmt.Sprintf("handle_request_of_bench_%d", 100+len(c.names))
		}
		stack = append(stack, address)
	}
	c.stacks = append(c.stacks, stack)
}

func readSample(c *content, line string) {
	fields := strings.Fields(line)
	stack, err := strconv.Atoi(fields[0])
	fail(err)
	s := sample{stack: int32(stack)}
	_, err = hex.Decode(s.traceID[:], []byte(fields[1]))
	fail(err)
	_, err = hex.Decode(s.spanID[:], []byte(fields[2]))
	fail(err)
	s.time, err = strconv.ParseUint(fields[3], 10, 64)
	fail(err)
	c.samples = append(c.samples, s)
}

func read(path string) *content {
	file, err := os.Open(path)
	fail(err)
	defer file.Close()
	c := &content{names: map[uint64]string{}}
	inSamples := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		switch {
		case lines.Text() == "":
			inSamples = true
		case inSamples:
			readSample(c, lines.Text())
		default:
			readStack(c, lines.Text())
		}
	}
	return c
}

// pdataTables fills the dictionary, whose entries 0 are empty, with what is the same for all samples.
func pdataTables(c *content, dictionary pprofile.ProfilesDictionary) {
	dictionary.StringTable().Append("", "samples", "count", "cpu", "nanoseconds", "bench.c", "/bin/bench")
	dictionary.MappingTable().AppendEmpty()
	dictionary.MappingTable().AppendEmpty().SetFilenameStrindex(6)
	dictionary.FunctionTable().AppendEmpty()
	dictionary.LocationTable().AppendEmpty()
	dictionary.LinkTable().AppendEmpty()
	dictionary.AttributeTable().AppendEmpty()
	dictionary.StackTable().AppendEmpty()
	locations := make(map[uint64]int32, len(c.names))
	for _, addresses := range c.stacks {
		indices := dictionary.StackTable().AppendEmpty().LocationIndices()
		indices.EnsureCapacity(len(addresses))
		for _, address := range addresses {
			number, known := locations[address]
			if !known {
				number = pdataLocation(c, dictionary, address)
				locations[address] = number
			}
			indices.Append(number)
		}
	}
}

func pdataLocation(c *content, dictionary pprofile.ProfilesDictionary, address uint64) int32 {
	number := int32(dictionary.LocationTable().Len())
	dictionary.StringTable().Append(c.names[address])
	function := dictionary.FunctionTable().AppendEmpty()
	function.SetNameStrindex(int32(dictionary.StringTable().Len() - 1))
	function.SetFilenameStrindex(5)
	function.SetStartLine(60)
	location := dictionary.LocationTable().AppendEmpty()
	location.SetMappingIndex(1)
	location.SetAddress(address)
	line := location.Lines().AppendEmpty()
	line.SetFunctionIndex(int32(dictionary.FunctionTable().Len() - 1))
	line.SetLine(60)
	return number
}

type link struct {
	traceID [16]byte
	spanID  [8]byte
}

func pdataRound(c *content, timestamps bool) []byte {
	profiles := pprofile.NewProfiles()
	dictionary := profiles.Dictionary()
	pdataTables(c, dictionary)
	resource := profiles.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "bench")
	p := resource.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(2)
	p.PeriodType().SetTypeStrindex(3)
	p.PeriodType().SetUnitStrindex(4)
	p.SetPeriod(10101010)
	p.SetTime(pcommon.Timestamp(start))
	p.SetDurationNano(10e9)
	p.SetProfileID([16]byte{1})
	p.Samples().EnsureCapacity(len(c.samples))
	links := make(map[link]int32, 1024)
	for i := range c.samples {
		from := &c.samples[i]
		key := link{from.traceID, from.spanID}
		number, known := links[key]
		if !known {
			number = int32(dictionary.LinkTable().Len())
			links[key] = number
			entry := dictionary.LinkTable().AppendEmpty()
			entry.SetTraceID(from.traceID)
			entry.SetSpanID(from.spanID)
		}
		to := p.Samples().AppendEmpty()
		to.SetStackIndex(from.stack + 1)
		to.SetLinkIndex(number)
		if timestamps {
			to.TimestampsUnixNano().Append(start + from.time)
		} else {
			to.Values().Append(1)
		}
	}
	bytes, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiles)
	fail(err)
	return bytes
}

func pprofRound(c *content, _ bool) []byte {
	mapping := &profile.Mapping{ID: 1, File: "/bin/bench"}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     10101010, TimeNanos: start, DurationNanos: 10e9,
		Mapping: []*profile.Mapping{mapping},
	}
	locations := make(map[uint64]*profile.Location, len(c.names))
	stacks := make([][]*profile.Location, len(c.stacks))
	for i, addresses := range c.stacks {
		for _, address := range addresses {
			location := locations[address]
			if location == nil {
				id := uint64(len(p.Location) + 1)
				function := &profile.Function{ID: id, Name: c.names[address], Filename: "bench.c", StartLine: 60}
				location = &profile.Location{ID: id, Mapping: mapping, Address: address,
					Line: []profile.Line{{Function: function, Line: 60}}}
				locations[address] = location
				p.Function = append(p.Function, function)
				p.Location = append(p.Location, location)
			}
			stacks[i] = append(stacks[i], location)
		}
	}
	p.Sample = make([]*profile.Sample, 0, len(c.samples))
	for i := range c.samples {
		from := &c.samples[i]
		p.Sample = append(p.Sample, &profile.Sample{
			Location: stacks[from.stack], Value: []int64{1},
			Label: map[string][]string{"trace_id": {hex.EncodeToString(from.traceID[:])},
				"span_id": {hex.EncodeToString(from.spanID[:])}}})
	}
	var out bytes.Buffer
	fail(p.WriteUncompressed(&out))
	return out.Bytes()
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func measure(name string, c *content, rounds int, timestamps bool, round func(*content, bool) []byte) {
	var last []byte
	best := time.Hour
	before := cpuTime()
	for i := 0; i < rounds; i++ {
		begin := cpuTime()
		last = round(c, timestamps)
		if took := cpuTime() - begin; took < best {
			best = took
		}
	}
	mean := (cpuTime() - before) / time.Duration(rounds)
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, 6)
	_, err := writer.Write(last)
	fail(err)
	fail(writer.Close())
	count := float64(len(c.samples))
	fmt.Printf("%-18s %6.3f M samples/s  (mean %.3f)  %.1f bytes a sample, %.2f after gzip 6\n", name,
		count*1e3/float64(best), count*1e3/float64(mean), float64(len(last))/count, float64(packed.Len())/count)
}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: peers CONTENT [ROUNDS]"))
	}
	rounds := 20
	if len(os.Args) > 2 {
		var err error
		rounds, err = strconv.Atoi(os.Args[2])
		fail(err)
	}
	c := read(os.Args[1])
	measure("pdata values", c, rounds, false, pdataRound)
	measure("pdata timestamps", c, rounds, true, pdataRound)
	measure("google/pprof", c, rounds, false, pprofRound)
}
