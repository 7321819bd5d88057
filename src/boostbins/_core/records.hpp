// Where the records of a CSV end: a line's end inside quotes is a part of a value.
#pragma once

#include <cstddef>
#include <cstring>

namespace boostbins {

enum class Fault { none, left_open, badly_closed };

struct Records {
    size_t end = 0;  // behind the last record that is whole
    Fault fault = Fault::none;
    size_t quote = 0;  // where the value with the fault begins
};

// Reads text that begins with a record, as Arrow's parser does: a quote opens a value at its first byte only,
// two of them stand for one, and what follows the closing one up to the separator belongs to the value. The
// last is taken for a fault where the value has more than one line: a quote that was never closed runs up to
// the next value's opening one.
inline Records records_in(const char* text, size_t size, char separator) {
    Records found;
    const char* const end = text + size;
    const auto ends_line = [](char c) { return c == '\n' || c == '\r'; };
    const auto next = [end](const char* from, char c) {
        const void* at = std::memchr(from, c, static_cast<size_t>(end - from));
        return at ? static_cast<const char*>(at) : end;
    };
    // The end of the last line between two places that are not inside quotes.
    const auto lines_up_to = [&](const char* from, const char* to) {
        for (const char* at = to; at != from; --at)
            if (ends_line(at[-1])) {
                found.end = static_cast<size_t>(at - text);
                return;
            }
    };
    for (const char* at = text; at != end;) {
        const char* const quote = next(at, '"');
        lines_up_to(at, quote);
        if (quote == end) break;
        at = quote + 1;
        const bool opens = quote == text || quote[-1] == separator || ends_line(quote[-1]);
        if (!opens) continue;
        found.quote = static_cast<size_t>(quote - text);
        for (;; at += 2) {
            at = next(at, '"');
            if (at == end || at + 1 == end || at[1] != '"') break;
        }
        if (at == end) {
            found.fault = Fault::left_open;
            break;
        }
        const char* const closing = at++;
        if (at != end && at[0] != separator && !ends_line(at[0])) {
            const size_t length = static_cast<size_t>(closing - quote);
            if (std::memchr(quote, '\n', length) || std::memchr(quote, '\r', length)) {
                found.fault = Fault::badly_closed;
                break;
            }
        }
    }
    return found;
}

}  // namespace boostbins
