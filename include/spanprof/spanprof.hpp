/* SPDX-License-Identifier: Apache-2.0 */
/* spanprof for C++17: objects that end in their destructor what they began, over the calls of
 * <spanprof/spanprof.h>, whose rules apply here as well.
 *
 *     spanprof::active_span span{"GET /cart",
 *                                spanprof::span_options{}.kind(SPANPROF_SPAN_KIND_SERVER)};
 *     span.set_attribute("http.response.status_code", 200);
 *
 * Everything is inline and a few instructions around the C call. Nothing throws, needs exceptions
 * or RTTI, or allocates, except inside the library itself, as in C.
 *
 * Texts (names, keys, descriptions) are taken as const char *, as anything with c_str() such as
 * std::string, or as std::string_view. A view need not end with a NUL, so it is copied to the
 * stack, and cut after 1,023 bytes. Values of attributes are never cut: they may be views of any
 * length. Bytes after a NUL are ignored.
 *
 * Threads: a span, tracer or context may be used by any; a scope stays on the thread that made it,
 * which is why it cannot be moved. */
#ifndef SPANPROF_SPANPROF_HPP
#define SPANPROF_SPANPROF_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
#include <typeinfo>
#define SPANPROF_HAVE_RTTI 1
#endif

#include <spanprof/spanprof.h>

namespace spanprof
{

/* --- texts ------------------------------------------------------------------------------------ */

/* A text that ends with a NUL, for the duration of a call. */
class text
{
  public:
    text(const char *terminated) noexcept : data_(terminated)
    {
    }

    template <class String,
              class = decltype(static_cast<const char *>(std::declval<const String &>().c_str()))>
    text(const String &string) noexcept : data_(string.c_str())
    {
    }

    text(std::string_view view) noexcept : data_(copy_)
    {
        std::size_t length = view.size() < sizeof copy_ ? view.size() : cut(view);
        if (length != 0)
            std::memcpy(copy_, view.data(), length);
        copy_[length] = 0;
    }

    text(const text &) = delete;
    text &operator=(const text &) = delete;

    const char *c_str() const noexcept
    {
        return data_;
    }

  private:
    /* The length at which a long VIEW is cut: not within a character of UTF-8. */
    static std::size_t cut(std::string_view view) noexcept
    {
        std::size_t length = sizeof copy_ - 1;
        while (length != 0 && (static_cast<unsigned char>(view[length]) & 0xc0) == 0x80)
            --length;
        return length;
    }

    const char *data_;
    char copy_[1024];
};

/* --- attributes ------------------------------------------------------------------------------- */

namespace detail
{

template <class T> using element = std::remove_cv_t<std::remove_pointer_t<T>>;

/* Something contiguous: std::vector, std::array, std::span, or anything else with data() and
 * size(). */
template <class T, class = void> struct is_range : std::false_type {
};
template <class T>
struct is_range<T, std::void_t<decltype(std::declval<const T &>().data()),
                               decltype(std::declval<const T &>().size())>>
    : std::bool_constant<!std::is_convertible_v<const T &, std::string_view>> {
};

inline std::uint32_t count_of(std::size_t count) noexcept
{
    return count < UINT32_MAX ? static_cast<std::uint32_t>(count) : UINT32_MAX;
}

template <class Integer> std::int64_t to_int(Integer value) noexcept
{
    if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) == sizeof(std::int64_t))
        return value > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(value);
    else
        return static_cast<std::int64_t>(value);
}

template <class Value> constexpr bool always_false = false;

template <class Value> void fill_array(spanprof_attribute &to, const Value *data, std::size_t count)
{
    to.count = count_of(count);
    if constexpr (std::is_same_v<Value, bool>) {
        to.type = SPANPROF_ATTRIBUTE_BOOL_ARRAY;
        to.value.bool_array = data;
    } else if constexpr (std::is_same_v<Value, double>) {
        to.type = SPANPROF_ATTRIBUTE_DOUBLE_ARRAY;
        to.value.double_array = data;
    } else if constexpr (std::is_same_v<Value, const char *> || std::is_same_v<Value, char *>) {
        to.type = SPANPROF_ATTRIBUTE_STRING_ARRAY;
        to.value.string_array = data;
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
        to.type = SPANPROF_ATTRIBUTE_INT_ARRAY;
        to.value.int_array = data;
    } else {
        static_assert(always_false<Value>,
                      "an array is one of std::int64_t, double, bool or const char *");
    }
}

template <class Value> void fill(spanprof_attribute &to, const Value &value)
{
    if constexpr (std::is_same_v<Value, bool>) {
        to.type = SPANPROF_ATTRIBUTE_BOOL;
        to.value.bool_value = value;
    } else if constexpr (std::is_integral_v<Value>) {
        to.type = SPANPROF_ATTRIBUTE_INT;
        to.value.int_value = to_int(value);
    } else if constexpr (std::is_floating_point_v<Value>) {
        to.type = SPANPROF_ATTRIBUTE_DOUBLE;
        to.value.double_value = static_cast<double>(value);
    } else if constexpr (std::is_convertible_v<const Value &, const char *>) {
        to.type = SPANPROF_ATTRIBUTE_STRING;
        to.value.string_value = value;
    } else if constexpr (std::is_convertible_v<const Value &, std::string_view>) {
        std::string_view view = value;
        to.type = SPANPROF_ATTRIBUTE_SIZED_STRING;
        to.count = count_of(view.size());
        to.value.string_value = view.data();
    } else if constexpr (is_range<Value>::value) {
        fill_array(to, value.data(), value.size());
    } else {
        static_assert(always_false<Value>, "no type that an attribute can have");
    }
}

} // namespace detail

/* A key and its value, for a list of them: {"items", 3}. Both are borrowed until the call that
 * takes it returns. The key ends with a NUL. VALUE is as for span::set_attribute. */
struct attribute : spanprof_attribute {
    template <class Value>
    attribute(const char *name, const Value &given) noexcept : spanprof_attribute()
    {
        key = name;
        detail::fill<std::decay_t<const Value>>(*this, given);
    }
};
static_assert(sizeof(attribute) == sizeof(spanprof_attribute), "a list of them is one for C");

/* A list of attributes: {{"a", 1}, {"b", "two"}}, or a range of `attribute`. Borrowed. */
class attributes
{
  public:
    attributes() noexcept = default;
    attributes(std::initializer_list<attribute> list) noexcept
    {
        data_ = list.begin();
        count_ = list.size();
    }
    template <class Range,
              class = std::enable_if_t<std::is_same_v<
                  detail::element<decltype(std::declval<const Range &>().data())>, attribute>>>
    attributes(const Range &range) noexcept : data_(range.data()), count_(range.size())
    {
    }

    const spanprof_attribute *data() const noexcept
    {
        return data_;
    }
    std::uint32_t count() const noexcept
    {
        return detail::count_of(count_);
    }

  private:
    const attribute *data_ = nullptr;
    std::size_t count_ = 0;
};

/* --- contexts --------------------------------------------------------------------------------- */

class scope;

/* The span that work belongs to: 64 bytes of plain data. Copy it with work that is passed to
 * another thread. */
class context
{
  public:
    context() noexcept : c_()
    {
    }
    context(const spanprof_context &c) noexcept : c_(c)
    {
    }

    /* The active context of this thread. */
    static context current() noexcept
    {
        return spanprof_context_current();
    }

    /* The context in a traceparent header. Not valid when the header is not valid. */
    static context extract(const text &traceparent) noexcept
    {
        context out;
        spanprof_context_extract(&out.c_, traceparent.c_str(), nullptr);
        return out;
    }

    /* The context in a set of headers. GET is a function object bool(const char *name,
     * std::uint32_t index, std::string_view &value) that sets VALUE to the INDEXth header called
     * NAME (without case), or returns false. It must not throw. See
     * spanprof_propagation_extract. */
    template <class Get> static context extract_headers(Get &&get) noexcept
    {
        context out;
        spanprof_propagation_extract(&out.c_, call_getter<std::remove_reference_t<Get>>,
                                     address(get));
        return out;
    }

    /* Calls SET, void(const char *name, const char *value), with each header of this context. SET
     * must not throw. Returns how many headers there are. */
    template <class Set> std::uint32_t inject_headers(Set &&set) const noexcept
    {
        return spanprof_propagation_inject(&c_, call_setter<std::remove_reference_t<Set>>,
                                           address(set));
    }

    /* Writes this context as a traceparent. False, and "", when it is not valid. */
    bool inject(char (&traceparent)[56]) const noexcept
    {
        return spanprof_context_inject(&c_, traceparent) != 0;
    }

    /* Baggage, as spanprof_baggage_set, _remove and _each say. VISIT is bool(const char *key, const
     * char *value, const char *metadata). */
    spanprof_status set_baggage(const text &key, const text &value,
                                const text &metadata = "") noexcept
    {
        return spanprof_baggage_set(&c_, &c_, key.c_str(), value.c_str(), metadata.c_str());
    }
    spanprof_status remove_baggage(const text &key) noexcept
    {
        return spanprof_baggage_remove(&c_, &c_, key.c_str());
    }
    template <class Visit> spanprof_status each_baggage(Visit &&visit) const noexcept
    {
        return spanprof_baggage_each(&c_, call_visitor<std::remove_reference_t<Visit>>,
                                     address(visit));
    }

    /* Attributes of samples under this context, as spanprof_context_set_attribute says. */
    spanprof_status set_attribute(const text &key, const text &value) noexcept
    {
        return spanprof_context_set_attribute(&c_, key.c_str(), value.c_str());
    }
    spanprof_status remove_attribute(const text &key) noexcept
    {
        return spanprof_context_set_attribute(&c_, key.c_str(), nullptr);
    }

    bool is_valid() const noexcept
    {
        static const unsigned char zeroes[16] = {};
        return std::memcmp(c_.trace_id, zeroes, sizeof c_.trace_id) != 0 &&
               std::memcmp(c_.span_id, zeroes, sizeof c_.span_id) != 0;
    }
    bool is_sampled() const noexcept
    {
        return (c_.trace_flags & SPANPROF_TRACE_FLAG_SAMPLED) != 0;
    }
    bool is_remote() const noexcept
    {
        return c_.remote != 0;
    }

    /* Makes this the active context of the thread until the scope ends. */
    scope attach() const noexcept;

    const spanprof_context *c_context() const noexcept
    {
        return &c_;
    }

  private:
    template <class Function> static void *address(Function &function) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(&function));
    }

    template <class Get>
    static bool call_getter(void *user, const char *name, std::uint32_t index,
                            spanprof_header_value *value)
    {
        std::string_view view;
        if (!(*static_cast<Get *>(user))(name, index, view))
            return false;
        value->data = view.data();
        value->length = view.size();
        return true;
    }

    template <class Set> static void call_setter(void *user, const char *name, const char *value)
    {
        (*static_cast<Set *>(user))(name, value);
    }

    template <class Visit>
    static bool call_visitor(void *user, const char *key, const char *value, const char *metadata)
    {
        return (*static_cast<Visit *>(user))(key, value, metadata);
    }

    spanprof_context c_;
};

/* The scope of an attach: at its end the context that was active before is active again. Scopes may
 * end in any order. A scope belongs to its thread, so it can be neither copied nor moved. It can
 * still be returned from functions, and made by std::optional::emplace. */
class [[nodiscard]] scope
{
  public:
    explicit scope(const context &active) noexcept : c_(spanprof_context_attach(active.c_context()))
    {
    }
    explicit scope(spanprof_span span) noexcept : c_(spanprof_span_attach(span))
    {
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope()
    {
        detach();
    }

    /* Ends the scope before its destructor. */
    void detach() noexcept
    {
        if (c_.serial != 0)
            spanprof_scope_detach(&c_);
    }

  private:
    spanprof_scope c_;
};

inline scope context::attach() const noexcept
{
    return scope(*this);
}

/* A function that runs under the context that was active where it was made: what carry() returns.
 */
template <class Function> class carried
{
  public:
    template <class Given>
    carried(const context &active, Given &&function)
        : context_(active), function_(std::forward<Given>(function))
    {
    }

    template <class... Arguments> decltype(auto) operator()(Arguments &&...arguments)
    {
        scope active(context_);
        return function_(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments> decltype(auto) operator()(Arguments &&...arguments) const
    {
        scope active(context_);
        return function_(std::forward<Arguments>(arguments)...);
    }

  private:
    context context_;
    Function function_;
};

/* FUNCTION, to be called later or on another thread (std::thread, std::async, a pool, a callback),
 * with the context that is active now:
 *
 *     pool.submit(spanprof::carry([order] { print(order); }));
 *
 * It can be copied and called as often as FUNCTION can. */
template <class Function> carried<std::decay_t<Function>> carry(Function &&function)
{
    return carried<std::decay_t<Function>>(context::current(), std::forward<Function>(function));
}

/* A stack of its own with scopes of its own (fiber.h). No thread may run it when the object is
 * destroyed. */
class fiber
{
  public:
    fiber(void *stack, std::size_t stack_bytes) noexcept
        : c_(spanprof_fiber_create(stack, stack_bytes))
    {
    }
    fiber(fiber &&other) noexcept : c_(std::exchange(other.c_, spanprof_fiber{}))
    {
    }
    fiber &operator=(fiber &&other) noexcept
    {
        std::swap(c_, other.c_);
        return *this;
    }
    ~fiber()
    {
        spanprof_fiber_destroy(c_);
    }

    /* Call it right before the thread continues in this fiber's stack; switch_back, right before it
     * continues in its own. */
    spanprof_status switch_to() const noexcept
    {
        return spanprof_fiber_switch(c_);
    }
    static void switch_back() noexcept
    {
        spanprof_fiber_switch(spanprof_fiber{});
    }

    spanprof_fiber c_fiber() const noexcept
    {
        return c_;
    }

  private:
    spanprof_fiber c_;
};

/* --- spans ------------------------------------------------------------------------------------ */

/* Options of a span's start. The arguments are borrowed until the start, so it is best to write
 * them where the span is started. */
class span_options
{
  public:
    span_options() noexcept : c_()
    {
        c_.struct_size = sizeof c_;
    }

    span_options &kind(spanprof_span_kind kind) noexcept
    {
        c_.kind = kind;
        return *this;
    }
    /* Default: the active context. One that is not valid begins a new trace. */
    span_options &parent(const context &parent) noexcept
    {
        c_.parent = parent.c_context();
        return *this;
    }
    /* Nanoseconds since the epoch. Default: now. */
    span_options &start_time_ns(std::uint64_t time_ns) noexcept
    {
        c_.start_time_ns = time_ns;
        return *this;
    }
    span_options &attributes(const spanprof::attributes &list) noexcept
    {
        c_.attributes = list.data();
        c_.attribute_count = list.count();
        return *this;
    }
    span_options &links(const spanprof_link *list, std::uint32_t count) noexcept
    {
        c_.links = list;
        c_.link_count = count;
        return *this;
    }

    const spanprof_span_options *c_options() const noexcept
    {
        return &c_;
    }

  private:
    spanprof_span_options c_;
};

namespace detail
{

/* The name of a type from its mangled form, if that consists of namespaces and classes only
 * ("N3app5errorE", "St13runtime_error"). It does not use the runtime's demangler, which allocates.
 * Other names stay mangled. */
class type_name
{
  public:
    explicit type_name(const char *mangled) noexcept : mangled_(mangled)
    {
        const char *at = mangled;
        bool nested = *at == 'N';
        at += nested ? 1 : 0;
        if (at[0] == 'S' && at[1] == 't') {
            append("std", 3);
            at += 2;
        }
        while (*at >= '1' && *at <= '9')
            at = component(at);
        readable_ =
            length_ != 0 && length_ < sizeof name_ && std::strcmp(at, nested ? "E" : "") == 0;
    }

    const char *c_str() const noexcept
    {
        return readable_ ? name_ : mangled_;
    }

  private:
    const char *component(const char *at) noexcept
    {
        std::size_t length = 0;
        while (*at >= '0' && *at <= '9' && length < sizeof name_)
            length = length * 10 + static_cast<std::size_t>(*at++ - '0');
        if (std::memchr(at, 0, length))
            return "?"; /* not a valid name */
        bool anonymous = length >= 11 && std::memcmp(at, "_GLOBAL__N_", 11) == 0;
        append(anonymous ? "(anonymous namespace)" : at, anonymous ? 21 : length);
        return at + length;
    }

    void append(const char *word, std::size_t length) noexcept
    {
        std::size_t separator = length_ != 0 ? 2 : 0;
        if (length_ + separator + length >= sizeof name_) {
            length_ = sizeof name_;
            return;
        }
        std::memcpy(name_ + length_, "::", separator);
        std::memcpy(name_ + length_ + separator, word, length);
        length_ += separator + length;
        name_[length_] = 0;
    }

    const char *mangled_;
    std::size_t length_ = 0;
    bool readable_ = false;
    char name_[256];
};

} // namespace detail

/* A span, which ends in its destructor. Move it to the code that ends it; a moved-from object has
 * no span. */
class span
{
  public:
    span() noexcept : c_()
    {
    }
    explicit span(const text &name, const span_options &options = {},
                  spanprof_tracer *tracer = nullptr) noexcept
        : c_(spanprof_span_start(tracer, name.c_str(), options.c_options()))
    {
    }
    /* Takes a span that was started in C. */
    explicit span(spanprof_span started) noexcept : c_(started)
    {
    }
    span(span &&other) noexcept : c_(other.release())
    {
    }
    span &operator=(span &&other) noexcept
    {
        if (this != &other) {
            end();
            c_ = other.release();
        }
        return *this;
    }
    ~span()
    {
        end();
    }

    /* Ends the span before its destructor. TIME_NS is since the epoch, 0 is now. */
    void end(std::uint64_t time_ns = 0) noexcept
    {
        if (c_.slot != 0)
            spanprof_span_end_at(release(), time_ns);
    }

    /* Gives the span away: the caller then has to end the returned span. */
    [[nodiscard]] spanprof_span release() noexcept
    {
        return std::exchange(c_, spanprof_span{});
    }
    spanprof_span c_span() const noexcept
    {
        return c_;
    }

    /* VALUE: bool, an integer (kept up to INT64_MAX), a floating point number, text of any length,
     * or a contiguous range (std::vector, std::array, std::span, an initializer list) of
     * std::int64_t, double, bool or const char *. */
    template <class Value> span &set_attribute(const text &key, const Value &value) noexcept
    {
        return set<std::decay_t<const Value>>(key, value);
    }
    template <class Value>
    span &set_attribute(const text &key, std::initializer_list<Value> values) noexcept
    {
        spanprof_attribute attribute{};
        attribute.key = key.c_str();
        detail::fill_array(attribute, values.begin(), values.size());
        spanprof_span_set_attribute(c_, &attribute);
        return *this;
    }

    /* TIME_NS: since the epoch, 0 is now. */
    span &add_event(const text &name, const attributes &attributes = {},
                    std::uint64_t time_ns = 0) noexcept
    {
        spanprof_event_options options = event_options(attributes, time_ns);
        spanprof_span_add_event(c_, name.c_str(), &options);
        return *this;
    }

    span &add_link(const context &to, const attributes &attributes = {}) noexcept
    {
        spanprof_link link{};
        link.context = to.c_context();
        link.attributes = attributes.data();
        link.attribute_count = attributes.count();
        spanprof_span_add_link(c_, &link);
        return *this;
    }

    /* The event "exception" with ERROR's type, where there is RTTI, and message. The status stays
     * as it is. */
    span &record_error(const std::exception &error, const attributes &attributes = {}) noexcept
    {
        spanprof_event_options options = event_options(attributes, 0);
#ifdef SPANPROF_HAVE_RTTI
        detail::type_name type(typeid(error).name());
        spanprof_span_record_error(c_, type.c_str(), error.what(), nullptr, &options);
#else
        spanprof_span_record_error(c_, nullptr, error.what(), nullptr, &options);
#endif
        return *this;
    }
    span &record_error(const text &type, const text &message,
                       const attributes &attributes = {}) noexcept
    {
        spanprof_event_options options = event_options(attributes, 0);
        spanprof_span_record_error(c_, type.c_str(), message.c_str(), nullptr, &options);
        return *this;
    }

    span &set_status(spanprof_span_status status, const text &description = "") noexcept
    {
        spanprof_span_set_status(c_, status, description.c_str());
        return *this;
    }
    span &update_name(const text &name) noexcept
    {
        spanprof_span_update_name(c_, name.c_str());
        return *this;
    }

    spanprof::context context() const noexcept
    {
        return spanprof_span_context(c_);
    }
    bool is_recording() const noexcept
    {
        return spanprof_span_is_recording(c_);
    }

    /* Makes its context the active one of the thread until the scope ends. */
    scope attach() const noexcept
    {
        return scope(c_);
    }

  private:
    template <class Value> span &set(const text &key, const Value &value) noexcept
    {
        spanprof_attribute attribute{};
        attribute.key = key.c_str();
        detail::fill<Value>(attribute, value);
        spanprof_span_set_attribute(c_, &attribute);
        return *this;
    }

    static spanprof_event_options event_options(const attributes &attributes,
                                                std::uint64_t time_ns) noexcept
    {
        spanprof_event_options options{};
        options.struct_size = sizeof options;
        options.attributes = attributes.data();
        options.attribute_count = attributes.count();
        options.time_ns = time_ns;
        return options;
    }

    spanprof_span c_;
};

/* A span that is active for as long as it lives. It belongs to its thread, as its scope does. */
class active_span : public span
{
  public:
    explicit active_span(const text &name, const span_options &options = {},
                         spanprof_tracer *tracer = nullptr) noexcept
        : span(name, options, tracer), scope_(c_span())
    {
    }
    active_span(active_span &&) = delete;
    active_span &operator=(active_span &&) = delete;

  private:
    scope scope_; /* ends before the span does */
};

/* Starts the spans of one instrumentation scope. Copy it; the same scope is the same tracer for the
 * life of the process. */
class tracer
{
  public:
    tracer() noexcept = default; /* the default one */
    explicit tracer(const text &name, const text &version = "", const text &schema_url = "",
                    const attributes &attributes = {}) noexcept
    {
        spanprof_tracer_options options{};
        options.struct_size = sizeof options;
        options.name = name.c_str();
        options.version = version.c_str();
        options.schema_url = schema_url.c_str();
        options.attributes = attributes.data();
        options.attribute_count = attributes.count();
        c_ = spanprof_tracer_get_with(&options);
    }

    span start(const text &name, const span_options &options = {}) const noexcept
    {
        return span(name, options, c_);
    }
    /* The same, active until the returned object ends. */
    [[nodiscard]] active_span start_active(const text &name,
                                           const span_options &options = {}) const noexcept
    {
        return active_span(name, options, c_);
    }

    spanprof_tracer *c_tracer() const noexcept
    {
        return c_;
    }

  private:
    spanprof_tracer *c_ = nullptr;
};

} // namespace spanprof

#undef SPANPROF_HAVE_RTTI
#endif
