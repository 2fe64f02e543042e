#include "routing/concurrency_gate.hpp"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace flashgate;
using Enter = ConcurrencyGate::Enter;
using Waiter = ConcurrencyGate::Waiter;

namespace {

QueuePolicy queue_of(std::size_t entries, std::size_t bytes = 1'000'000) {
  QueuePolicy policy;
  policy.entries_max = entries;
  policy.bytes_max = bytes;
  return policy;
}

/// Notes the order in which waiters are granted.
struct Witness {
  Witness(std::vector<int>* the_order, int the_id) : order(the_order), id(the_id) {}
  std::vector<int>* order;
  int id;
  Waiter waiter{[](void* self) {
                  auto* witness = static_cast<Witness*>(self);
                  witness->order->push_back(witness->id);
                },
                this};
};

}  // namespace

TEST_CASE("calls up to the limit go at once, further ones wait in the order they came") {
  ConcurrencyGate gate(2, queue_of(10));
  std::vector<int> order;
  std::deque<Witness> all;
  for (int i = 0; i < 5; ++i) all.emplace_back(&order, i);
  CHECK(gate.enter(all[0].waiter, 1) == Enter::granted);
  CHECK(gate.enter(all[1].waiter, 1) == Enter::granted);
  for (std::size_t i = 2; i < 5; ++i) CHECK(gate.enter(all[i].waiter, 1) == Enter::queued);
  CHECK(gate.in_flight() == 2);
  CHECK(gate.queued() == 3);
  for (int i = 0; i < 5; ++i) gate.release();
  CHECK(order == std::vector<int>{2, 3, 4});
  CHECK(gate.in_flight() == 0);
  CHECK(gate.queued_bytes() == 0);
}

TEST_CASE("the queue is bounded by entries and by bytes") {
  ConcurrencyGate gate(1, queue_of(3, 100));
  std::deque<Waiter> waiters(8);
  CHECK(gate.enter(waiters[0], 1'000'000) == Enter::granted);  // not queued, not held
  CHECK(gate.enter(waiters[1], 60) == Enter::queued);
  CHECK(gate.enter(waiters[2], 41) == Enter::refused_bytes);
  CHECK(gate.enter(waiters[2], SIZE_MAX) == Enter::refused_bytes);
  CHECK(gate.enter(waiters[2], 40) == Enter::queued);
  CHECK(gate.enter(waiters[3], 0) == Enter::queued);
  CHECK(gate.enter(waiters[4], 0) == Enter::refused_entries);
  CHECK(gate.queued_bytes() == 100);
  for (std::size_t i = 1; i <= 3; ++i) CHECK(gate.leave_queue(waiters[i]));
  CHECK(gate.queued() == 0);
  CHECK(gate.queued_bytes() == 0);
}

TEST_CASE("a hundred that gave up leave no ghosts: the next call runs at once") {
  ConcurrencyGate gate(1, queue_of(100));
  std::vector<int> order;
  std::deque<Witness> all;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  for (int i = 0; i < 100; ++i) all.emplace_back(&order, i);
  for (Witness& w : all) REQUIRE(gate.enter(w.waiter, 1000) == Enter::queued);
  for (Witness& w : all) REQUIRE(gate.leave_queue(w.waiter));
  CHECK(gate.queued() == 0);
  gate.release();
  CHECK(order.empty());
  Waiter next;
  CHECK(gate.enter(next, 0) == Enter::granted);
}

TEST_CASE("leaving from the head, the middle and the end keeps the order of the others") {
  ConcurrencyGate gate(1, queue_of(10));
  std::vector<int> order;
  std::deque<Witness> all;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  for (int i = 0; i < 6; ++i) all.emplace_back(&order, i);
  for (Witness& w : all) REQUIRE(gate.enter(w.waiter, 1) == Enter::queued);
  for (const std::size_t i : {0u, 3u, 5u}) CHECK(gate.leave_queue(all[i].waiter));
  CHECK(gate.enter(all[0].waiter, 1) == Enter::queued);  // and a place can be used again
  for (int i = 0; i < 5; ++i) gate.release();
  CHECK(order == std::vector<int>{1, 2, 4, 0});
}

TEST_CASE("leaving after the grant says that the slot is the caller's") {
  ConcurrencyGate gate(1, queue_of(10));
  std::vector<int> order;
  Witness witness(&order, 7);
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  REQUIRE(gate.enter(witness.waiter, 0) == Enter::queued);
  gate.release();
  CHECK(order == std::vector<int>{7});
  CHECK_FALSE(gate.leave_queue(witness.waiter));
  CHECK(gate.in_flight() == 1);
}

TEST_CASE("keys take turns, whoever has filled the queue") {
  ConcurrencyGate gate(1, queue_of(100));
  std::vector<int> order;
  std::deque<Witness> all;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  const auto enter = [&](int id, std::uint64_t key, int priority) {
    all.emplace_back(&order, id);
    all.back().waiter.set_turn(key, priority);
    REQUIRE(gate.enter(all.back().waiter, 0) == Enter::queued);
  };
  for (int i = 0; i < 5; ++i) enter(100 + i, 1, 0);
  for (int i = 0; i < 2; ++i) enter(200 + i, 2, 0);
  enter(300, 3, 0);
  enter(900, 1, 5);
  for (int i = 0; i < 10; ++i) gate.release();
  CHECK(order == std::vector<int>{900, 100, 200, 300, 101, 201, 102, 103, 104});
}

TEST_CASE("a key that comes late takes turns from then on, it has no past to claim") {
  ConcurrencyGate gate(1, queue_of(100));
  std::vector<int> order;
  std::deque<Witness> all;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  const auto enter = [&](int id, std::uint64_t key) {
    all.emplace_back(&order, id);
    all.back().waiter.set_turn(key);
    REQUIRE(gate.enter(all.back().waiter, 0) == Enter::queued);
  };
  for (int i = 0; i < 5; ++i) enter(100 + i, 1);
  for (int i = 0; i < 3; ++i) gate.release();
  for (int i = 0; i < 2; ++i) enter(200 + i, 2);
  for (int i = 0; i < 5; ++i) gate.release();
  CHECK(order == std::vector<int>{100, 101, 102, 103, 200, 104, 201});
}

TEST_CASE("a higher limit lets waiters in, a lower one drains without taking slots away") {
  ConcurrencyGate gate(1, queue_of(10));
  std::vector<int> order;
  std::deque<Witness> all;
  for (int i = 0; i < 5; ++i) all.emplace_back(&order, i);
  for (Witness& w : all) gate.enter(w.waiter, 0);
  gate.set_limit(3);
  CHECK(order == std::vector<int>{1, 2});
  gate.set_limit(1);
  gate.release();
  gate.release();
  CHECK(order == std::vector<int>{1, 2});
  gate.release();
  CHECK(order == std::vector<int>{1, 2, 3});
  gate.set_limit(0);  // no limit
  CHECK(order == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("a waiter that releases inside its own call makes a loop, not a recursion") {
  ConcurrencyGate gate(1, queue_of(200'000));
  struct Quick {
    Quick(ConcurrencyGate* the_gate, int* the_calls) : gate(the_gate), calls(the_calls) {}
    ConcurrencyGate* gate;
    int* calls;
    Waiter waiter{[](void* self) {
                    auto* quick = static_cast<Quick*>(self);
                    ++*quick->calls;
                    quick->gate->leave_queue(quick->waiter);  // must not wait for itself
                    quick->gate->release();
                  },
                  this};
  };
  int calls = 0;
  std::deque<Quick> all;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  for (int i = 0; i < 100'000; ++i) all.emplace_back(&gate, &calls);
  for (Quick& quick : all) REQUIRE(gate.enter(quick.waiter, 0) == Enter::queued);
  gate.release();
  CHECK(calls == 100'000);
  CHECK(gate.in_flight() == 0);
}

TEST_CASE("a slot belongs to its object and is given back once") {
  ConcurrencyGate gate(1, queue_of(1));
  Waiter waiter;
  REQUIRE(gate.enter(waiter, 0) == Enter::granted);
  {
    GateSlot slot(gate);
    GateSlot moved(std::move(slot));
    CHECK_FALSE(slot);
    CHECK(moved);
    gate.set_limit(5);  // the limit may change meanwhile
    slot = std::move(moved);
    CHECK(gate.in_flight() == 1);
  }
  CHECK(gate.in_flight() == 0);
}

namespace {

/// A caller with a mailbox of its own, as a call on some thread has. Nothing here waits for
/// time: a caller decides by dice to give up right after it was queued.
struct Caller {
  std::mutex mutex;
  std::condition_variable bell;
  bool granted = false;

  static void ring(void* self) {
    auto* caller = static_cast<Caller*>(self);
    const std::lock_guard lock(caller->mutex);
    caller->granted = true;
    caller->bell.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex);
    bell.wait(lock, [this] { return granted; });
  }
};

}  // namespace

TEST_CASE("who leaves while its function runs on another thread waits until it has returned") {
  struct Slow {
    std::atomic<bool> running = false;
    std::atomic<bool> leaving = false;
    std::atomic<bool> returned = false;
    Waiter waiter{[](void* self) {
                    auto* slow = static_cast<Slow*>(self);
                    slow->running = true;
                    while (!slow->leaving) std::this_thread::yield();
                    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                    slow->returned = true;
                  },
                  this};
  };
  ConcurrencyGate gate(1, queue_of(1));
  Slow slow;
  Waiter holder;
  REQUIRE(gate.enter(holder, 0) == Enter::granted);
  REQUIRE(gate.enter(slow.waiter, 0) == Enter::queued);
  std::thread releaser([&] { gate.release(); });
  while (!slow.running) std::this_thread::yield();
  slow.leaving = true;
  CHECK_FALSE(gate.leave_queue(slow.waiter));
  CHECK(slow.returned);
  releaser.join();
  CHECK(gate.in_flight() == 1);
}

TEST_CASE("under threads that wait, give up and release, the limit holds and nothing is left") {
  constexpr int limit = 3;
  ConcurrencyGate gate(limit, queue_of(6));
  std::atomic<int> inside = 0;
  std::atomic<int> inside_max = 0;
  std::atomic<int> served = 0;
  std::atomic<int> gave_up = 0;
  std::barrier barrier(8);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 dice(t + 1);
      barrier.arrive_and_wait();
      for (int i = 0; i < 2000; ++i) {
        // On the heap and freed at once: a late call would be a use after free.
        auto caller = std::make_unique<Caller>();
        Waiter waiter(&Caller::ring, caller.get());
        waiter.set_turn(t % 3);
        const Enter entered = gate.enter(waiter, 10);
        if (entered == Enter::refused_entries || entered == Enter::refused_bytes) continue;
        if (entered == Enter::queued) {
          if (dice() % 2 == 0) {
            if (gate.leave_queue(waiter)) {
              ++gave_up;
              continue;
            }
          } else {
            caller->wait();
          }
        }
        const int now_inside = ++inside;
        int most = inside_max;
        while (now_inside > most && !inside_max.compare_exchange_weak(most, now_inside)) {
        }
        if (dice() % 4 == 0) std::this_thread::yield();
        --inside;
        ++served;
        gate.release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(inside_max <= limit);
  CHECK(served > 0);
  CHECK(gate.in_flight() == 0);
  CHECK(gate.queued() == 0);
  CHECK(gate.queued_bytes() == 0);
  Waiter next;
  CHECK(gate.enter(next, 0) == Enter::granted);
}
