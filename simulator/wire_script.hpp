#pragma once
// An answer as the exact sequence of sends, waits and closings on a TCP connection, with the faults
// of docs/simulator.md worked in. Pure: reply + faults in, bytes out; any thread.
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/fault_rule.hpp"
#include "simulator/reply.hpp"

namespace flashgate {

struct Step {
  enum class Do { send, stall, finish, reset };
  enum class Part { interim, head, event, tail };
  Do what = Do::send;
  Part part = Part::tail;
  std::string bytes{};
  std::uint64_t repeat = 1;  // `bytes` so many times
  Duration wait{};           // before it
  bool paced = true;         // the wait grows with load
  bool ends_event = false;
};

struct Script {
  std::vector<Step> steps{};
  std::uint64_t send_bytes_max = 0;  // 0: as much as there is
  Duration pause{};                  // between sends of that size
  bool close = false;                // FIN after the last step
};

struct ScriptFacts {
  int minor_version = 1;
  bool keep_alive = true;
  bool to_head = false;
  bool early_headers = false;
  std::uint64_t seed = 1;
  std::string request_id{};
};

/// Faults that change what is said, not how it is framed.
void apply_to_reply(Reply& reply, const std::vector<FaultRule>& faults);
Script write_script(const Reply& reply, const std::vector<FaultRule>& faults,
                    const ScriptFacts& facts);

std::string_view reason_phrase(int status);

}  // namespace flashgate
