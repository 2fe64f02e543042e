#include "routing/fault.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace flashgate;

namespace {
constexpr auto good = AttemptVerdict::success;
constexpr auto bad = AttemptVerdict::failure;
constexpr auto neutral = AttemptVerdict::neutral;
}  // namespace

TEST_CASE("a status means one row of the taxonomy") {
  struct Row {
    int status;
    const char* code;
    const char* message;
    bool has_hint;
    FaultClass fault;
    AttemptVerdict breaker;
    bool retry_same;
    bool try_other;
  };
  const std::vector<Row> table{
      {200, "", "", false, FaultClass::none, good, false, false},
      {204, "", "", false, FaultClass::none, good, false, false},
      {302, "", "", false, FaultClass::transient, neutral, false, true},
      {400, "", "bad field", false, FaultClass::client_fault, neutral, false, false},
      {404, "", "no such thing", false, FaultClass::client_fault, neutral, false, false},
      {404, "", "model is not loaded", false, FaultClass::transient, neutral, false, true},
      {413, "", "", false, FaultClass::client_fault, neutral, false, false},
      {415, "", "", false, FaultClass::client_fault, neutral, false, false},
      {422, "", "", false, FaultClass::client_fault, neutral, false, false},
      {401, "", "", false, FaultClass::upstream_auth, neutral, false, true},
      {403, "", "", false, FaultClass::upstream_auth, neutral, false, true},
      {402, "", "", false, FaultClass::quota, neutral, false, true},
      {429, "insufficient_quota", "", false, FaultClass::quota, neutral, false, true},
      {429, "", "You exceeded your current quota, check your plan", false, FaultClass::quota,
       neutral, false, true},
      {400, "", "You have reached your usage limit, access again on 2030-01-01", false,
       FaultClass::quota, neutral, false, true},
      {408, "", "", false, FaultClass::transient, neutral, true, true},
      {409, "", "", false, FaultClass::transient, neutral, true, true},
      {425, "", "", false, FaultClass::transient, neutral, true, true},
      {429, "", "slow down", false, FaultClass::backpressure, neutral, true, true},
      {429, "rate_limit_exceeded", "", true, FaultClass::backpressure, neutral, true, true},
      {500, "", "", false, FaultClass::transient, bad, true, true},
      {501, "", "", false, FaultClass::transient, neutral, false, true},
      {502, "", "", false, FaultClass::transient, bad, true, true},
      {503, "", "", false, FaultClass::transient, bad, true, true},
      {503, "", "", true, FaultClass::backpressure, neutral, true, true},
      {504, "", "", false, FaultClass::transient, bad, true, true},
      {529, "", "overloaded", false, FaultClass::backpressure, neutral, true, true},
      {0, "", "", false, FaultClass::transient, bad, false, true},
      {999, "", "", false, FaultClass::transient, bad, false, true},
  };
  for (const Row& row : table) {
    INFO(row.status << " " << row.code << " " << row.message);
    const AttemptFault fault = classify_status(row.status, row.code, row.message, row.has_hint);
    CHECK(name(fault.fault) == name(row.fault));
    CHECK(fault.breaker == row.breaker);
    CHECK(fault.retry_same == row.retry_same);
    CHECK(fault.try_other == row.try_other);
    CHECK_FALSE(fault.larger_window_only);
  }
}

TEST_CASE("too long a prompt is recognised in the words of several backends") {
  struct Row {
    int status;
    const char* code;
    const char* message;
  };
  for (const Row& row : {
           Row{400, "context_length_exceeded", ""},
           Row{400, "", "This model's maximum context length is 8192 tokens. However, you asked"},
           Row{400, "", "the request exceeds the available context size"},
           Row{400, "exceed_context_size_error", ""},
           Row{413, "", "prompt is too long: 210000 tokens > 200000 maximum"},
           Row{422, "", "Input is too long for requested model."},
           Row{500, "", "Context size has been exceeded."},
       }) {
    INFO(row.message);
    const AttemptFault fault = classify_status(row.status, row.code, row.message);
    CHECK(fault.fault == FaultClass::context_length);
    CHECK(fault.breaker == neutral);
    CHECK_FALSE(fault.retry_same);
    CHECK(fault.try_other);
    CHECK(fault.larger_window_only);
  }
}

TEST_CASE("a transport fault means one row of the taxonomy") {
  struct Row {
    TransportFault transport;
    FaultClass fault;
    AttemptVerdict breaker;
    bool retry_same;
    bool try_other;
    bool duplicate;
  };
  using T = TransportFault;
  const std::vector<Row> table{
      {T::none, FaultClass::none, good, false, false, false},
      {T::connect_refused, FaultClass::transient, bad, true, true, false},
      {T::connect_timeout, FaultClass::transient, bad, true, true, false},
      {T::connect_failed, FaultClass::transient, bad, true, true, false},
      {T::tls_error, FaultClass::transient, bad, false, true, false},
      {T::stale_connection, FaultClass::transient, neutral, true, true, false},
      {T::reset_before_response, FaultClass::transient, bad, true, true, false},
      {T::reset_after_request, FaultClass::transient, bad, false, true, true},
      {T::first_byte_timeout, FaultClass::transient, bad, true, true, true},
      {T::idle_timeout, FaultClass::transient, bad, false, true, true},
      {T::protocol_error, FaultClass::transient, bad, false, true, true},
      {T::response_too_large, FaultClass::transient, bad, false, true, true},
      {T::truncated, FaultClass::truncated, bad, false, true, true},
      {T::empty_reply, FaultClass::empty_reply, bad, true, true, true},
      {T::total_timeout, FaultClass::local, neutral, false, false, false},
      {T::client_left, FaultClass::local, neutral, false, false, false},
      {T::shutting_down, FaultClass::local, neutral, false, false, false},
  };
  for (const Row& row : table) {
    INFO(name(row.transport));
    const AttemptFault fault = classify_transport(row.transport);
    CHECK(name(fault.fault) == name(row.fault));
    CHECK(fault.breaker == row.breaker);
    CHECK(fault.retry_same == row.retry_same);
    CHECK(fault.try_other == row.try_other);
    CHECK(fault.possible_duplicate == row.duplicate);
  }
}

TEST_CASE("an error inside a 200 counts against the backend unless it names another cause") {
  CHECK(classify_in_band(0, "", "CUDA error").breaker == bad);
  CHECK(classify_in_band(0, "", "CUDA error").fault == FaultClass::in_band);
  CHECK(classify_in_band(500, "", "").fault == FaultClass::in_band);
  CHECK(classify_in_band(400, "", "bad tool").fault == FaultClass::client_fault);
  CHECK(classify_in_band(429, "", "").fault == FaultClass::backpressure);
  CHECK(classify_in_band(0, "rate_limit_exceeded", "").fault == FaultClass::backpressure);
  CHECK(classify_in_band(0, "insufficient_quota", "").fault == FaultClass::quota);
  CHECK(classify_in_band(0, "context_length_exceeded", "").larger_window_only);
}

TEST_CASE("an endless error message costs bounded time and misleads nobody") {
  const std::string endless(10'000'000, 'x');
  CHECK(classify_status(500, endless, endless + "context length").fault == FaultClass::transient);
}
