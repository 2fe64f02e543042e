#include "simulator/gzip_writer.hpp"

#include <stdexcept>

namespace flashgate {
namespace {

constexpr int gzip_window_bits = 15 + 16;  // zlib's way to ask for the gzip wrapper
constexpr int memory_level = 8;

}  // namespace

GzipWriter::GzipWriter() {
  if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window_bits, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib could not start");
  }
}

GzipWriter::~GzipWriter() {
  deflateEnd(&stream_);
}

std::string GzipWriter::write(std::string_view bytes, bool last) {
  std::string out;
  // zlib reads through a non-const pointer but does not write to it.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  char buffer[16 * 1024];
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = sizeof buffer;
    deflate(&stream_, last ? Z_FINISH : Z_SYNC_FLUSH);
    out.append(buffer, sizeof buffer - stream_.avail_out);
  } while (stream_.avail_out == 0);
  return out;
}

}  // namespace flashgate
