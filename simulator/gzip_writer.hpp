#pragma once
// Gzip (RFC 1952) piece by piece, as servers compress an event stream: each piece can be read when
// it arrives. Not copyable; one thread at a time.
#include <zlib.h>

#include <string>
#include <string_view>

namespace flashgate {

class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  /// `last` ends the stream; else the bytes so far are flushed.
  std::string write(std::string_view bytes, bool last);

 private:
  z_stream stream_{};
};

}  // namespace flashgate
