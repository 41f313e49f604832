/* SPDX-License-Identifier: Apache-2.0 */
/* Spans in C++: a span ends with its object, also when an exception is thrown. Another thread works
 * for a span by the span's context.
 *
 *     SPANPROF_EXPORTER=file SPANPROF_FILE=/tmp/cplusplus SPANPROF_CPU_TIME=root ./cplusplus
 *     spanprof spans /tmp/cplusplus.*.jsonl
 */
#include <spanprof/spanprof.hpp>

#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

static const spanprof::tracer tracer{"example.cplusplus", "1.0"};

static double mean(const std::vector<double> &values)
{
    auto span = tracer.start_active("mean");
    span.set_attribute("values", values.size());
    if (values.empty())
        throw std::invalid_argument("the mean of nothing");
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/* Another thread works for the request: the scope makes the request's context active there. */
static double mean_elsewhere(const std::vector<double> &values)
{
    double result = 0;
    std::thread worker([&, context = spanprof::context::current()] {
        auto scope = context.attach();
        result = mean(values);
    });
    worker.join();
    return result;
}

static void answer(std::string_view line)
{
    auto options = spanprof::span_options{}.kind(SPANPROF_SPAN_KIND_SERVER);
    auto request = tracer.start_active("request", options);
    request.set_attribute("line", line.substr(0, line.find(';')));
    std::vector<double> values(line.size() * 100000, 0.5);
    try {
        std::printf("elsewhere: %g\n", mean_elsewhere(values));
        values.clear();
        std::printf("here: %g\n", mean(values));
    } catch (const std::exception &error) {
        request.record_error(error).set_status(SPANPROF_SPAN_STATUS_ERROR, error.what());
        std::printf("here: %s\n", error.what());
    }
}

int main()
{
    spanprof_error error;
    if (spanprof_start(nullptr, &error) != SPANPROF_OK)
        std::fprintf(stderr, "cplusplus: running without spans: %s\n", error.message);
    answer("GET /mean; as a comment");
    spanprof_stop(UINT64_C(5000000000));
}
