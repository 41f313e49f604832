/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof under opentelemetry-cpp: its tracer stays, and samples find its spans. C++14,
 * opentelemetry-cpp 1.9 or newer, either ABI.
 *
 *     #include <spanprof/opentelemetry.hpp>
 *     spanprof::opentelemetry::install();  // first thing in main, before any span
 *     processor = spanprof::opentelemetry::wrap(std::move(processor));
 *     // pass the wrapped processor to TracerProviderFactory::Create
 *
 * There are two hooks. The context storage reports which span a thread works for: it is called at
 * each attach and detach, on the thread that they act on. The span processor reports the spans and
 * their parents, from which the local root follows, which is the span that Grafana requests
 * profiles for. It may also mark spans with pyroscope.profile.id. docs/tracers/opentelemetry-cpp.md
 * says what neither hook can know.
 *
 * It is header-only, because opentelemetry-cpp promises no binary interface between builds: your
 * compiler builds this with the options of your opentelemetry-cpp. Everything is noexcept. As in
 * opentelemetry-cpp itself, the program ends when there is no memory for a span or for a deeper
 * stack of contexts.
 *
 * Threads: call install before another thread uses opentelemetry-cpp, and before the first span.
 * For the rest the rules of opentelemetry-cpp apply. Signals: not safe. Fork: a child that should
 * be profiled calls spanprof_start. */
#ifndef SPANPROF_OPENTELEMETRY_HPP
#define SPANPROF_OPENTELEMETRY_HPP

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/sdk/trace/multi_span_processor.h>
#include <opentelemetry/sdk/trace/processor.h>
#include <opentelemetry/sdk/trace/recordable.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/span_context.h>
#include <opentelemetry/trace/span_metadata.h>
#include <opentelemetry/version.h>

#include <spanprof/spanprof.h>

namespace spanprof
{
namespace opentelemetry
{
namespace detail
{

namespace api = ::opentelemetry::trace;
namespace sdk = ::opentelemetry::sdk::trace;
namespace context = ::opentelemetry::context;
namespace nostd = ::opentelemetry::nostd;

inline spanprof_context to_context(const api::SpanContext &from) noexcept
{
    spanprof_context to = {};
    std::memcpy(to.trace_id, from.trace_id().Id().data(), sizeof to.trace_id);
    std::memcpy(to.span_id, from.span_id().Id().data(), sizeof to.span_id);
    to.trace_flags = from.trace_flags().flags();
    to.remote = from.IsRemote();
    return to;
}

/* All zero when FROM has no span. GetSpan is not used, because in older versions it makes a span
 * then. */
inline spanprof_context span_of(const context::Context &from) noexcept
{
    const context::ContextValue value = from.GetValue(api::kSpanKey);
    const auto *span = nostd::get_if<nostd::shared_ptr<api::Span>>(&value);
    return span && span->get() ? to_context((*span)->GetContext()) : spanprof_context{};
}

/* --- which span a thread works for ------------------------------------------------------------ */

/* Forwards to another storage, and keeps a stack of spanprof's scopes next to the stack of that
 * storage: an entry for each attached context, with the same rules. A detach removes the topmost
 * entry with the token's context, and all entries above it; a token whose context is not in the
 * stack does nothing. A context with the same span as the one below it (baggage was added) needs no
 * scope. */
class context_storage final : public context::RuntimeContextStorage
{
  public:
    explicit context_storage(nostd::shared_ptr<context::RuntimeContextStorage> inner) noexcept
        : inner_(std::move(inner))
    {
    }

    context::Context GetCurrent() noexcept override
    {
        return inner_->GetCurrent();
    }

    nostd::unique_ptr<context::Token> Attach(const context::Context &context) noexcept override
    {
        auto token = inner_->Attach(context);
        if (auto *entries = entries_of_thread())
            push(*entries, context);
        return token;
    }

    bool Detach(context::Token &token) noexcept override
    {
        auto *entries = entries_of_thread();
        /* Without entries, opentelemetry-cpp's own stack is destroyed, too, and a detach would use
         * it. */
        if (!entries)
            return false;
        pop(*entries, token);
        return inner_->Detach(token);
    }

  private:
    struct entry {
        context::Context context;
        spanprof_context span;
        spanprof_scope scope; /* zero: the entry below has the same span */
    };

    /* Whether this thread's entries are destroyed already: objects that live longer may still hold
     * tokens. */
    static bool &is_over() noexcept
    {
        static thread_local bool over = false;
        return over;
    }

    struct thread_entries {
        std::vector<entry> entries;

        ~thread_entries()
        {
            is_over() = true;
        }
    };

    static std::vector<entry> *entries_of_thread() noexcept
    {
        if (is_over())
            return nullptr;
        static thread_local thread_entries own;
        return &own.entries;
    }

    static void push(std::vector<entry> &entries, const context::Context &context) noexcept
    {
        const spanprof_context span = span_of(context);
        const spanprof_context below = entries.empty() ? spanprof_context{} : entries.back().span;
        spanprof_scope scope = {};
        if (std::memcmp(&span, &below, sizeof span) != 0)
            scope = spanprof_context_attach(&span);
        entries.push_back({context, span, scope});
    }

    static void pop(std::vector<entry> &entries, const context::Token &token) noexcept
    {
        std::size_t left = entries.size();
        while (left > 0 && !(token == entries[left - 1].context))
            --left;
        while (left > 0 && entries.size() >= left) {
            /* The entry is moved out first. Its context may be the last reference to a span, which
             * then ends, and an exporter may attach contexts meanwhile. */
            entry last = std::move(entries.back());
            entries.pop_back();
            if (last.scope.thread != 0)
                spanprof_scope_detach(&last.scope);
        }
    }

    nostd::shared_ptr<context::RuntimeContextStorage> inner_;
};

/* --- which spans there are -------------------------------------------------------------------- */

/* Wraps the recordable of the inner processor, and keeps the ids and the name that were set. */
class recordable final : public sdk::Recordable
{
  public:
    explicit recordable(std::unique_ptr<sdk::Recordable> &&inner) noexcept
        : inner_(std::move(inner))
    {
    }

    const spanprof_context &identity() const noexcept
    {
        return identity_;
    }

    const char *name() const noexcept
    {
        return name_;
    }

    sdk::Recordable &inner() noexcept
    {
        return *inner_;
    }

    std::unique_ptr<sdk::Recordable> take_inner() noexcept
    {
        return std::move(inner_);
    }

    void SetIdentity(const api::SpanContext &span, api::SpanId parent) noexcept override
    {
        identity_ = to_context(span);
        inner_->SetIdentity(span, parent);
    }

    void SetName(nostd::string_view name) noexcept override
    {
        const std::size_t length = name.size() < sizeof name_ ? name.size() : sizeof name_ - 1;
        if (length != 0)
            std::memcpy(name_, name.data(), length);
        name_[length] = 0;
        inner_->SetName(name);
    }

    void SetAttribute(nostd::string_view key,
                      const ::opentelemetry::common::AttributeValue &value) noexcept override
    {
        inner_->SetAttribute(key, value);
    }

    void AddEvent(nostd::string_view name, ::opentelemetry::common::SystemTimestamp time,
                  const ::opentelemetry::common::KeyValueIterable &attributes) noexcept override
    {
        inner_->AddEvent(name, time, attributes);
    }

    void AddLink(const api::SpanContext &to,
                 const ::opentelemetry::common::KeyValueIterable &attributes) noexcept override
    {
        inner_->AddLink(to, attributes);
    }

    void SetStatus(api::StatusCode code, nostd::string_view description) noexcept override
    {
        inner_->SetStatus(code, description);
    }

    void SetSpanKind(api::SpanKind kind) noexcept override
    {
        inner_->SetSpanKind(kind);
    }

    void SetResource(const ::opentelemetry::sdk::resource::Resource &resource) noexcept override
    {
        inner_->SetResource(resource);
    }

    void SetStartTime(::opentelemetry::common::SystemTimestamp time) noexcept override
    {
        inner_->SetStartTime(time);
    }

    void SetDuration(std::chrono::nanoseconds duration) noexcept override
    {
        inner_->SetDuration(duration);
    }

    void
    SetInstrumentationScope(const ::opentelemetry::sdk::instrumentationscope::InstrumentationScope
                                &scope) noexcept override
    {
        inner_->SetInstrumentationScope(scope);
    }

#if OPENTELEMETRY_VERSION_MAJOR > 1 || OPENTELEMETRY_VERSION_MINOR >= 14
    void SetTraceFlags(api::TraceFlags flags) noexcept override
    {
        inner_->SetTraceFlags(flags);
    }
#endif

#if __has_include(<opentelemetry/sdk/trace/span_limits.h>)
    void SetSpanLimits(const sdk::SpanLimits &limits) noexcept override
    {
        inner_->SetSpanLimits(limits);
    }
#endif

    explicit operator sdk::SpanData *() const override
    {
        return static_cast<sdk::SpanData *>(*inner_);
    }

  private:
    std::unique_ptr<sdk::Recordable> inner_;
    spanprof_context identity_ = {};
    char name_[80] = "";
};

class processor final : public sdk::SpanProcessor
{
  public:
    explicit processor(std::unique_ptr<sdk::SpanProcessor> &&inner) noexcept
        : inner_(std::move(inner))
    {
    }

    std::unique_ptr<sdk::Recordable> MakeRecordable() noexcept override
    {
        auto inner = inner_->MakeRecordable();
        if (!inner)
            return inner;
        return std::unique_ptr<sdk::Recordable>(new recordable(std::move(inner)));
    }

    void OnStart(sdk::Recordable &span, const api::SpanContext &parent) noexcept override
    {
        auto &own = static_cast<recordable &>(span);
        const spanprof_context parent_context = to_context(parent);
        spanprof_start_attributes add = SPANPROF_START_ATTRIBUTES_INIT;
        spanprof_processor_on_start(&own.identity(), parent.IsValid() ? &parent_context : nullptr,
                                    own.name(), 0, &add);
        for (std::uint32_t i = 0; i < add.count; ++i)
            own.inner().SetAttribute(add.items[i].key, add.items[i].value.string_value);
        inner_->OnStart(own.inner(), parent);
    }

    void OnEnd(std::unique_ptr<sdk::Recordable> &&span) noexcept override
    {
        auto own = std::move(span);
        auto &ended = static_cast<recordable &>(*own);
        spanprof_processor_on_end(&ended.identity(), 0);
        inner_->OnEnd(ended.take_inner());
    }

    bool ForceFlush(
        std::chrono::microseconds timeout = (std::chrono::microseconds::max)()) noexcept override
    {
        return inner_->ForceFlush(timeout);
    }

    bool Shutdown(
        std::chrono::microseconds timeout = (std::chrono::microseconds::max)()) noexcept override
    {
        return inner_->Shutdown(timeout);
    }

  private:
    std::unique_ptr<sdk::SpanProcessor> inner_;
};

} // namespace detail

/* --- the lines to adopt ----------------------------------------------------------------------- */

/* Report each attach and detach to spanprof, and start the SDK with options from the environment
 * unless it runs. For other options, call spanprof_start before. INNER stores the contexts:
 * opentelemetry-cpp's default, or your storage, which has to keep a stack for each thread like the
 * default. It replaces the storage that RuntimeContext::SetRuntimeContextStorage has set before.
 * Returns the result of spanprof_start, but success when the SDK runs already. When the start
 * fails, contexts and spans still work. Since 0.1. */
inline spanprof_status
install(::opentelemetry::nostd::shared_ptr<::opentelemetry::context::RuntimeContextStorage> inner =
            ::opentelemetry::nostd::shared_ptr<::opentelemetry::context::RuntimeContextStorage>(
                new ::opentelemetry::context::ThreadLocalContextStorage())) noexcept
{
    ::opentelemetry::context::RuntimeContext::SetRuntimeContextStorage(
        ::opentelemetry::nostd::shared_ptr<::opentelemetry::context::RuntimeContextStorage>(
            new detail::context_storage(std::move(inner))));
    const spanprof_status status = spanprof_start(nullptr, nullptr);
    return status == SPANPROF_ERROR_ALREADY_STARTED ? SPANPROF_OK : status;
}

/* A processor around PROCESSOR, which it owns. It reports each span to spanprof, gives spans that
 * have a profile the attribute pyroscope.profile.id, and passes everything on. NULL stays NULL.
 * Wrap exactly one processor, because each wrapper reports the spans. Since 0.1. */
inline std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor>
wrap(std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor> &&processor) noexcept
{
    if (!processor)
        return nullptr;
    return std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor>(
        new detail::processor(std::move(processor)));
}

/* The same around several, so that each of their exporters gets the attribute.  Since 0.1. */
inline std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor>
wrap(std::vector<std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor>> &&processors) noexcept
{
    return wrap(std::unique_ptr<::opentelemetry::sdk::trace::SpanProcessor>(
        new ::opentelemetry::sdk::trace::MultiSpanProcessor(std::move(processors))));
}

} // namespace opentelemetry
} // namespace spanprof

#endif
