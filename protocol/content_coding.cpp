#include "protocol/content_coding.hpp"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

namespace flashgate {
namespace {

constexpr std::size_t codings_max = 4;
constexpr std::size_t step_bytes = 64 * 1024;
// RFC 9659: a zstd content coding needs a window of at most 8 MB.
constexpr int zstd_window_log_max = 23;

enum class Coding { identity, gzip, deflate, brotli, zstd, unknown };

std::string lower_trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

Coding parse_coding(std::string_view name) {
  if (name == "identity") return Coding::identity;
  if (name == "gzip" || name == "x-gzip") return Coding::gzip;
  if (name == "deflate") return Coding::deflate;
  if (name == "br") return Coding::brotli;
  if (name == "zstd") return Coding::zstd;
  return Coding::unknown;
}

/// Output that grows by steps and never past the cap.
class Output {
 public:
  Output(std::string& bytes, std::size_t bytes_max) : bytes_(bytes), bytes_max_(bytes_max) {
    bytes_.clear();
  }
  /// Room for the next step; one byte more than the cap tells "full" from "too much".
  char* room() {
    begin_ = bytes_.size();
    const std::size_t left = bytes_max_ + 1 - begin_;
    bytes_.resize(begin_ + std::min(left, std::max(step_bytes, begin_ / 2)));
    return bytes_.data() + begin_;
  }
  std::size_t room_bytes() const { return bytes_.size() - begin_; }
  /// False: the cap is passed.
  bool keep(std::size_t bytes) {
    bytes_.resize(begin_ + bytes);
    return bytes_.size() <= bytes_max_;
  }

 private:
  std::string& bytes_;
  std::size_t bytes_max_;
  std::size_t begin_ = 0;
};

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

// `window_bits` as inflateInit2 takes them. Gzip members may follow each other (RFC 1952 §2.2).
CodingOutcome inflate_all(std::string_view body, int window_bits, bool members, Output out) {
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) return CodingOutcome::corrupt;
  const std::unique_ptr<z_stream, InflateEnd> guard(&stream);
  constexpr std::size_t input_step = std::size_t{1} << 30;
  for (;;) {
    auto* const at = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
    const auto given = static_cast<uInt>(std::min(body.size(), input_step));
    stream.next_in = at;
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(out.room());
    const auto room = static_cast<uInt>(out.room_bytes());
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t used = given - stream.avail_in;
    const std::size_t written = room - stream.avail_out;
    body.remove_prefix(used);
    if (!out.keep(written)) return CodingOutcome::too_large;
    if (result == Z_STREAM_END) {
      if (body.empty()) return CodingOutcome::ok;
      if (!members || inflateReset(&stream) != Z_OK) return CodingOutcome::corrupt;
    } else if ((result != Z_OK && result != Z_BUF_ERROR) || (used == 0 && written == 0)) {
      return CodingOutcome::corrupt;
    }
  }
}

// RFC 9110 §8.4.1.2 means zlib; some senders mean raw deflate.
CodingOutcome inflate_deflate(std::string_view body, std::string& out, std::size_t bytes_max) {
  const auto byte = [body](std::size_t i) { return static_cast<unsigned char>(body[i]); };
  const bool zlib =
      body.size() >= 2 && (byte(0) & 0x0F) == 8 && (byte(0) * 256U + byte(1)) % 31 == 0;
  if (zlib) {
    const CodingOutcome outcome = inflate_all(body, MAX_WBITS, false, Output(out, bytes_max));
    if (outcome != CodingOutcome::corrupt) return outcome;
  }
  return inflate_all(body, -MAX_WBITS, false, Output(out, bytes_max));
}

struct BrotliEnd {
  void operator()(BrotliDecoderState* state) const { BrotliDecoderDestroyInstance(state); }
};

CodingOutcome unbrotli(std::string_view body, Output out) {
  const std::unique_ptr<BrotliDecoderState, BrotliEnd> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr));
  if (!state) return CodingOutcome::corrupt;
  std::size_t input_bytes = body.size();
  const auto* input = reinterpret_cast<const std::uint8_t*>(body.data());
  for (;;) {
    auto* output = reinterpret_cast<std::uint8_t*>(out.room());
    std::size_t left = out.room_bytes();
    const std::size_t room = left;
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state.get(), &input_bytes, &input, &left, &output, nullptr);
    if (!out.keep(room - left)) return CodingOutcome::too_large;
    if (result == BROTLI_DECODER_RESULT_SUCCESS) {
      return input_bytes == 0 ? CodingOutcome::ok : CodingOutcome::corrupt;
    }
    if (result != BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) return CodingOutcome::corrupt;
  }
}

struct ZstdEnd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

CodingOutcome unzstd(std::string_view body, Output out) {
  const std::unique_ptr<ZSTD_DCtx, ZstdEnd> context(ZSTD_createDCtx());
  if (!context) return CodingOutcome::corrupt;
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, zstd_window_log_max);
  ZSTD_inBuffer input{body.data(), body.size(), 0};
  for (;;) {
    ZSTD_outBuffer output{out.room(), 0, 0};
    output.size = out.room_bytes();
    const std::size_t input_before = input.pos;
    const std::size_t hint = ZSTD_decompressStream(context.get(), &output, &input);
    if (!out.keep(output.pos)) return CodingOutcome::too_large;
    if (ZSTD_isError(hint) != 0) return CodingOutcome::corrupt;
    if (hint == 0 && input.pos == input.size) return CodingOutcome::ok;
    if (input.pos == input_before && output.pos == 0) return CodingOutcome::corrupt;
  }
}

CodingOutcome undo(Coding coding, std::string_view body, std::size_t bytes_max, std::string& out) {
  switch (coding) {
    case Coding::gzip:
      return inflate_all(body, MAX_WBITS + 16, true, Output(out, bytes_max));
    case Coding::deflate:
      return inflate_deflate(body, out, bytes_max);
    case Coding::brotli:
      return unbrotli(body, Output(out, bytes_max));
    case Coding::zstd:
      return unzstd(body, Output(out, bytes_max));
    default:
      return CodingOutcome::unsupported;
  }
}

}  // namespace

CodingOutcome decode_content(std::string_view content_encoding, std::string_view body,
                             std::size_t bytes_max, std::string& out) {
  std::array<Coding, codings_max> codings{};
  std::size_t count = 0;
  while (!content_encoding.empty()) {
    const std::size_t comma = std::min(content_encoding.find(','), content_encoding.size());
    const std::string name = lower_trimmed(content_encoding.substr(0, comma));
    content_encoding.remove_prefix(std::min(comma + 1, content_encoding.size()));
    if (name.empty()) continue;
    const Coding coding = parse_coding(name);
    if (coding == Coding::unknown || count == codings_max) return CodingOutcome::unsupported;
    if (coding != Coding::identity) codings[count++] = coding;
  }
  if (count == 0 || body.empty()) {
    if (body.size() > bytes_max) return CodingOutcome::too_large;
    out.assign(body);
    return CodingOutcome::ok;
  }
  std::string between;
  for (std::size_t i = count; i-- > 0;) {
    const CodingOutcome outcome = undo(codings[i], body, bytes_max, out);
    if (outcome != CodingOutcome::ok) {
      out.clear();
      return outcome;
    }
    if (i == 0) break;
    between.swap(out);
    body = between;
  }
  return CodingOutcome::ok;
}

}  // namespace flashgate
