#include "protocol/multipart.hpp"

#include <algorithm>

#include "base/json_text.hpp"
#include "protocol/http1_head.hpp"

namespace flashgate {
namespace {

constexpr std::size_t boundary_bytes_max = 70;  // RFC 2046 §5.1.1
constexpr std::size_t part_head_bytes_max = 8 * 1024;
constexpr std::size_t parts_max = 1024;
constexpr std::size_t stream_bytes_max = 16;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Walks `; name=value` parameters. False from `next` with `bad` set: malformed.
class Parameters {
 public:
  explicit Parameters(std::string_view text) : text_(text) {}

  bool next(std::string_view& name, std::string& value) {
    text_ = trimmed(text_);
    while (text_.starts_with(';')) text_ = trimmed(text_.substr(1));
    if (text_.empty()) return false;
    const std::size_t equals = text_.find_first_of("=;\"");
    if (equals == std::string_view::npos || text_[equals] != '=') return fail();
    name = trimmed(text_.substr(0, equals));
    text_ = trimmed(text_.substr(equals + 1));
    value.clear();
    if (text_.starts_with('"')) return quoted(value);
    const std::size_t end = std::min(text_.find(';'), text_.size());
    value = trimmed(text_.substr(0, end));
    text_.remove_prefix(end);
    return true;
  }
  bool bad() const { return bad_; }

 private:
  bool fail() {
    bad_ = true;
    return false;
  }
  bool quoted(std::string& value) {
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        text_ = trimmed(text_.substr(i + 1));
        return text_.empty() || text_.front() == ';' || fail();
      }
      if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
      value += text_[i];
    }
    return fail();
  }

  std::string_view text_;
  bool bad_ = false;
};

class MultipartReader {
 public:
  explicit MultipartReader(std::string_view body) : body_(body) {}

  MultipartFacts read(std::string_view content_type) {
    std::string boundary;
    if (!find_boundary(content_type, boundary)) return std::move(facts_);
    delimiter_ = "\r\n--" + boundary;
    std::size_t at = 0;
    // The first delimiter may stand at the very beginning, without its line break.
    if (body_.starts_with(std::string_view(delimiter_).substr(2))) {
      at = delimiter_.size() - 2;
    } else {
      at = body_.find(delimiter_);
      if (at == std::string_view::npos) return failed("the body does not hold its boundary");
      at += delimiter_.size();
    }
    for (std::size_t parts = 0; parts < parts_max; ++parts) {
      if (body_.substr(at, 2) == "--") {
        facts_.ok = true;
        return std::move(facts_);
      }
      if (!skip_line_end(at)) return failed("malformed boundary line");
      if (!read_part(at)) return std::move(facts_);
    }
    return failed("too many parts");
  }

 private:
  MultipartFacts failed(std::string_view why) {
    refuse(why);
    return std::move(facts_);
  }

  bool refuse(std::string_view why) {
    facts_ = MultipartFacts{};
    facts_.why = why;
    return false;
  }

  bool find_boundary(std::string_view content_type, std::string& boundary) {
    const std::size_t end = std::min(content_type.find(';'), content_type.size());
    if (!iequals(trimmed(content_type.substr(0, end)), "multipart/form-data")) {
      return refuse("Content-Type is not multipart/form-data");
    }
    Parameters parameters(content_type.substr(end));
    std::string_view name;
    std::string value;
    int count = 0;
    while (parameters.next(name, value)) {
      if (!iequals(name, "boundary")) continue;
      boundary = value;
      ++count;
    }
    if (parameters.bad() || count != 1 || boundary.empty() ||
        boundary.size() > boundary_bytes_max || boundary.find_first_of("\r\n") != boundary.npos) {
      return refuse("Content-Type needs one boundary of 1 to 70 characters");
    }
    return true;
  }

  // After a delimiter: white space and a line break.
  bool skip_line_end(std::size_t& at) const {
    while (at < body_.size() && (body_[at] == ' ' || body_[at] == '\t')) ++at;
    if (body_.substr(at, 2) != "\r\n") return false;
    at += 2;
    return true;
  }

  // A delimiter counts only if a line end or "--" follows; else it is data that looks like one.
  std::size_t find_delimiter(std::size_t from) const {
    for (;;) {
      const std::size_t found = body_.find(delimiter_, from);
      if (found == std::string_view::npos) return found;
      std::size_t after = found + delimiter_.size();
      if (body_.substr(after, 2) == "--" || skip_line_end(after)) return found;
      from = found + 1;
    }
  }

  // From a part's first header to just after the delimiter that ends it.
  bool read_part(std::size_t& at) {
    std::string name;
    bool encoded = false;
    if (!read_part_head(at, name, encoded)) return false;
    // The line break before the content also begins the delimiter of an empty part.
    const std::size_t end = find_delimiter(at - 2);
    if (end == std::string_view::npos) return refuse("the last part does not end");
    const std::size_t begin = std::min(at, end);
    if (!take_field(name, encoded, {begin, end})) return false;
    at = end + delimiter_.size();
    return true;
  }

  bool read_part_head(std::size_t& at, std::string& name, bool& encoded) {
    const std::size_t limit = at + part_head_bytes_max;
    bool disposition = false;
    for (;;) {
      const std::size_t end = body_.substr(0, std::min(body_.size(), limit)).find("\r\n", at);
      if (end == std::string_view::npos) return refuse("a part's headers do not end");
      const std::string_view line = body_.substr(at, end - at);
      at = end + 2;
      if (line.empty()) break;
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t' ||
          line.find_first_of("\r\n") != line.npos) {
        return refuse("malformed header of a part");
      }
      const std::string_view field = trimmed(line.substr(0, colon));
      const std::string_view value = trimmed(line.substr(colon + 1));
      if (iequals(field, "content-disposition")) {
        if (disposition) return refuse("a part has two Content-Disposition headers");
        disposition = true;
        if (!read_disposition(value, name)) return false;
      } else if (iequals(field, "content-transfer-encoding")) {
        encoded = !iequals(value, "7bit") && !iequals(value, "8bit") && !iequals(value, "binary");
      }
    }
    return disposition || refuse("a part has no Content-Disposition header");
  }

  bool read_disposition(std::string_view value, std::string& name) {
    const std::size_t end = std::min(value.find(';'), value.size());
    if (!iequals(trimmed(value.substr(0, end)), "form-data")) {
      return refuse("a part's Content-Disposition is not form-data");
    }
    Parameters parameters(value.substr(end));
    std::string_view parameter;
    std::string text;
    int names = 0;
    while (parameters.next(parameter, text)) {
      // RFC 7578 §4.2 forbids the extended form; a reader that knows it would see another name.
      if (iequals(parameter, "name*")) return refuse("a part's name is in the extended form");
      if (!iequals(parameter, "name")) continue;
      name = text;
      ++names;
    }
    return (!parameters.bad() && names == 1) || refuse("a part needs exactly one name");
  }

  bool take_field(std::string_view name, bool encoded, ByteRange range) {
    const std::string_view value = body_.substr(range.begin, range.size());
    if (name == "model") {
      if (facts_.has_model) return refuse("the form has two model fields");
      if (encoded) return refuse("the model field is encoded");
      if (value.empty() || value.size() > RequestFacts::model_bytes_max || !is_valid_utf8(value) ||
          value.find_first_of(std::string_view("\r\n\0", 3)) != value.npos) {
        return refuse("the model field is empty, too long or not one line of UTF-8");
      }
      facts_.has_model = true;
      facts_.model = value;
      facts_.model_range = range;
    } else if (name == "stream" && value.size() <= stream_bytes_max) {
      const std::string_view text = trimmed(value);
      facts_.stream = iequals(text, "true") || text == "1";
    }
    return true;
  }

  std::string_view body_;
  std::string delimiter_{};
  MultipartFacts facts_{};
};

}  // namespace

MultipartFacts read_multipart(std::string_view content_type, std::string_view body) {
  return MultipartReader(body).read(content_type);
}

}  // namespace flashgate
