#include "protocol/multipart.hpp"

#include <catch2/catch.hpp>

namespace flashgate {
namespace {

constexpr std::string_view type = "multipart/form-data; boundary=XyZ";

std::string part(std::string_view disposition, std::string_view value) {
  return "--XyZ\r\nContent-Disposition: form-data; " + std::string(disposition) + "\r\n\r\n" +
         std::string(value) + "\r\n";
}
const std::string end = "--XyZ--\r\n";
const std::string model_part = part("name=\"model\"", "whisper");

TEST_CASE("the model is found wherever it stands and its range is exact") {
  std::string audio(20'000'000, '\0');
  for (std::size_t i = 0; i < audio.size(); i += 1000) audio.replace(i, 12, "\r\n--XyZx\r\n--");
  const std::string file = part("name=\"file\"; filename=\"a.wav\"", audio);
  const std::string stream = part("name=stream", "true");
  for (const std::string& body : {file + model_part + end, model_part + file + stream + end,
                                  "preamble\r\n" + file + stream + model_part + end}) {
    const MultipartFacts facts = read_multipart(type, body);
    REQUIRE(facts.ok);
    CHECK(facts.model == "whisper");
    CHECK(body.substr(facts.model_range.begin, facts.model_range.size()) == "whisper");
    CHECK(facts.stream == (body.find("name=stream") != std::string::npos));
  }
}

TEST_CASE("a boundary may be quoted, and other parameters may stand around it") {
  const std::string body = model_part + end;
  for (const std::string_view header :
       {"multipart/form-data; boundary=\"XyZ\"", "Multipart/Form-Data;charset=utf-8;BOUNDARY=XyZ",
        "multipart/form-data ; boundary = XyZ ;x=y"}) {
    INFO(header);
    CHECK(read_multipart(header, body).model == "whisper");
  }
}

TEST_CASE("a form without a model is ok and has none") {
  const MultipartFacts facts = read_multipart(type, part("name=\"file\"", "x") + end);
  CHECK(facts.ok);
  CHECK_FALSE(facts.has_model);
  CHECK(read_multipart(type, end).ok);
}

TEST_CASE("names are taken with quotes, escapes and any order of parameters") {
  CHECK(read_multipart(type, part("filename=x; name=model", "m") + end).model == "m");
  CHECK(read_multipart(type, part("name=\"mo\\del\"", "m") + end).model == "m");
  CHECK_FALSE(read_multipart(type, part("filename=\"name=model\"; name=f", "m") + end).has_model);
}

TEST_CASE("an empty part does not swallow the next delimiter") {
  CHECK(read_multipart(type, part("name=a", "") + model_part + end).model == "whisper");
  const std::string bare = "--XyZ\r\nContent-Disposition: form-data; name=a\r\n\r\n--XyZ\r\n";
  CHECK(read_multipart(type, bare + model_part.substr(7) + end).model == "whisper");
}

TEST_CASE("what two readers could understand differently is not ok") {
  const std::string bodies[] = {
      model_part + model_part + end,
      part("name=\"model\"", "") + end,
      part("name=\"model\"", "a\r\nb") + end,
      part("name=\"model\"", "\xFF") + end,
      part("name=\"model\"", std::string(2000, 'm')) + end,
      part("name*=utf-8''model", "m") + end,
      part("name=a; name=model", "m") + end,
      part("name=\"model", "m") + end,
      part("x=y", "m") + end,
      "--XyZ\r\nContent-Disposition: form-data; name=model\r\n"
      "Content-Transfer-Encoding: base64\r\n\r\nbQ==\r\n" +
          end,
      "--XyZ\r\nContent-Disposition: form-data;\r\n name=model\r\n\r\nm\r\n" + end,
      "--XyZ\r\nContent-Disposition: form-data; name=a\r\n"
      "Content-Disposition: form-data; name=model\r\n\r\nm\r\n" +
          end,
      "--XyZ\r\nContent-Type: text/plain\r\n\r\nm\r\n" + end,
      "--XyZ\nContent-Disposition: form-data; name=model\n\nm\n--XyZ--\n",
      model_part,
      model_part + "--Xy",
      "",
      "no boundary here",
      "--XyZ\r\n" + std::string(10'000, 'h'),
  };
  for (const std::string& body : bodies) {
    INFO(body.substr(0, 120));
    const MultipartFacts facts = read_multipart(type, body);
    CHECK_FALSE(facts.ok);
    CHECK_FALSE(facts.why.empty());
    CHECK_FALSE(facts.has_model);
  }
}

TEST_CASE("a Content-Type without one usable boundary is not ok") {
  const std::string body = model_part + end;
  for (const std::string& header :
       {std::string("multipart/form-data"), std::string("multipart/mixed; boundary=XyZ"),
        std::string("multipart/form-data; boundary="),
        std::string("multipart/form-data; boundary=\"XyZ"),
        std::string("multipart/form-data; boundary=XyZ; boundary=XyZ"),
        "multipart/form-data; boundary=" + std::string(71, 'x'), std::string()}) {
    INFO(header);
    CHECK_FALSE(read_multipart(header, body).ok);
  }
}

TEST_CASE("too many parts are refused") {
  std::string body;
  for (int i = 0; i < 2000; ++i) body += part("name=a", "b");
  CHECK_FALSE(read_multipart(type, body + end).ok);
}

}  // namespace
}  // namespace flashgate
