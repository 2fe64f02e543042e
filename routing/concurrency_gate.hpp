#pragma once
// At most `limit` calls at a backend at once, the others in a bounded queue: by priority, then fair
// between keys, then first come. No ghosts: whoever stops waiting leaves the queue, and a waiter
// that leaves is never called afterwards.
// Every function may be called from any thread. The gate must outlive its waiters and slots.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "routing/queue_policy.hpp"

namespace flashgate {

class ConcurrencyGate {
 public:
  /// limit <= 0: no limit.
  ConcurrencyGate(int limit, QueuePolicy policy);
  ConcurrencyGate(const ConcurrencyGate&) = delete;
  ConcurrencyGate& operator=(const ConcurrencyGate&) = delete;

  /// A place in the queue, owned by who waits. `granted(context)` is called once, outside the lock,
  /// perhaps on another thread; it must not throw, and is best a post to the owner's executor.
  /// REQUIRES: not destroyed while queued; call leave_queue first.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(void (*granted)(void*), void* context) : granted_(granted), context_(context) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    /// Before enter(). Waiters of different keys take turns; a higher priority goes first.
    void set_turn(std::uint64_t key, int priority = 0) {
      key_ = key;
      priority_ = priority;
    }

   private:
    friend class ConcurrencyGate;
    enum class Place { nowhere, queue, ready };
    void (*granted_)(void*) = nullptr;
    void* context_ = nullptr;
    Waiter* prev_ = nullptr;
    Waiter* next_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint64_t key_ = 0;
    std::uint64_t round_ = 0;
    int priority_ = 0;
    Place place_ = Place::nowhere;
  };

  enum class Enter { granted, queued, refused_entries, refused_bytes };
  /// `granted`: the caller owns a slot now, the waiter's function is not called.
  Enter enter(Waiter& waiter, std::size_t bytes);
  /// True: was still queued and is removed. False: the slot had been granted and is the caller's to
  /// release. Either way the waiter's function has returned or will never be called.
  bool leave_queue(Waiter& waiter);
  void release();

  int in_flight() const;
  int limit() const;
  std::size_t queued() const;
  std::size_t queued_bytes() const;
  QueuePolicy policy() const;
  void set_limit(int limit);
  void set_policy(QueuePolicy policy);

 private:
  struct List {
    Waiter* head = nullptr;
    Waiter* tail = nullptr;
    void push_back(Waiter& waiter) { insert_after(tail, waiter); }
    void insert_after(Waiter* before, Waiter& waiter);  // null: at the head
    void remove(Waiter& waiter);
  };
  void enqueue(Waiter& waiter);
  bool has_room() const { return limit_ <= 0 || in_flight_ < limit_; }
  void grant_and_call(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable called_;
  QueuePolicy policy_;
  int limit_;
  int in_flight_ = 0;
  std::size_t queued_ = 0;
  std::size_t queued_bytes_ = 0;
  std::uint64_t round_ = 0;  // of the waiter granted last
  List queue_{};
  List ready_{};               // granted, not called yet
  Waiter* calling_ = nullptr;  // its function runs now; only compared, never followed
  bool caller_busy_ = false;
  std::thread::id caller_{};
};

/// Owns one slot of a gate, whatever becomes of the configuration meanwhile.
class GateSlot {
 public:
  GateSlot() = default;
  explicit GateSlot(ConcurrencyGate& gate) : gate_(&gate) {}
  GateSlot(GateSlot&& other) noexcept : gate_(other.gate_) { other.gate_ = nullptr; }
  GateSlot& operator=(GateSlot&& other) noexcept;
  ~GateSlot() { reset(); }
  void reset();
  explicit operator bool() const { return gate_ != nullptr; }

 private:
  ConcurrencyGate* gate_ = nullptr;
};

}  // namespace flashgate
