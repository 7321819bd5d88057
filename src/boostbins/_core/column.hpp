// A column of any numeric type and stride, read as blocks of doubles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "floats.hpp"

namespace boostbins {

constexpr size_t kBlock = 2048;  // rows; small enough that every pass over a block stays in the L1 cache

enum class Type { f64, f32, i64, i32, i16, i8, u64, u32, u16, u8 };

struct Column {
    const void* data;
    Type type;
    std::ptrdiff_t stride;  // in elements
    size_t size;

    // Rows begin, begin + step, ... as doubles: in place if they lie so, else written to the buffer.
    const double* read(size_t begin, size_t rows, double* buffer, size_t step = 1) const {
        switch (type) {
            case Type::f64:
                if (stride == 1 && step == 1) return static_cast<const double*>(data) + begin;
                return convert<double>(begin, rows, buffer, step);
            case Type::f32:
                return convert<float>(begin, rows, buffer, step);
            case Type::i64:
                return convert<std::int64_t>(begin, rows, buffer, step);
            case Type::i32:
                return convert<std::int32_t>(begin, rows, buffer, step);
            case Type::i16:
                return convert<std::int16_t>(begin, rows, buffer, step);
            case Type::i8:
                return convert<std::int8_t>(begin, rows, buffer, step);
            case Type::u64:
                return convert<std::uint64_t>(begin, rows, buffer, step);
            case Type::u32:
                return convert<std::uint32_t>(begin, rows, buffer, step);
            case Type::u16:
                return convert<std::uint16_t>(begin, rows, buffer, step);
            case Type::u8:
                return convert<std::uint8_t>(begin, rows, buffer, step);
        }
        return buffer;
    }

  private:
    template <class T>
    const double* convert(size_t begin, size_t rows, double* buffer, size_t step) const {
        const std::ptrdiff_t jump = stride * static_cast<std::ptrdiff_t>(step);
        const T* from = static_cast<const T*>(data) + stride * static_cast<std::ptrdiff_t>(begin);
        for (size_t i = 0; i < rows; ++i)
            buffer[i] = static_cast<double>(from[static_cast<std::ptrdiff_t>(i) * jump]);
        return buffer;
    }
};

// Calls visit(x, begin, n) for each block of a column, as doubles.
template <class Visit>
void each_block(const Column& column, Visit visit) {
    double buffer[kBlock];
    for (size_t begin = 0; begin < column.size; begin += kBlock) {
        const size_t n = std::min(kBlock, column.size - begin);
        visit(column.read(begin, n, buffer), begin, n);
    }
}

}  // namespace boostbins
