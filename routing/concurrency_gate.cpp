#include "routing/concurrency_gate.hpp"

#include <algorithm>
#include <cassert>

namespace flashgate {

void ConcurrencyGate::List::insert_after(Waiter* before, Waiter& waiter) {
  waiter.prev_ = before;
  waiter.next_ = before ? before->next_ : head;
  (before ? before->next_ : head) = &waiter;
  (waiter.next_ ? waiter.next_->prev_ : tail) = &waiter;
}

void ConcurrencyGate::List::remove(Waiter& waiter) {
  (waiter.prev_ ? waiter.prev_->next_ : head) = waiter.next_;
  (waiter.next_ ? waiter.next_->prev_ : tail) = waiter.prev_;
  waiter.prev_ = nullptr;
  waiter.next_ = nullptr;
  waiter.place_ = Waiter::Place::nowhere;
}

ConcurrencyGate::ConcurrencyGate(int limit, QueuePolicy policy) : policy_(policy), limit_(limit) {}

ConcurrencyGate::Enter ConcurrencyGate::enter(Waiter& waiter, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  assert(waiter.place_ == Waiter::Place::nowhere);
  if (has_room() && queue_.head == nullptr) {
    ++in_flight_;
    return Enter::granted;
  }
  if (queued_ >= policy_.entries_max) return Enter::refused_entries;
  if (queued_bytes_ > policy_.bytes_max || bytes > policy_.bytes_max - queued_bytes_) {
    return Enter::refused_bytes;
  }
  waiter.bytes_ = bytes;
  enqueue(waiter);
  ++queued_;
  queued_bytes_ += bytes;
  return Enter::queued;
}

// Start-time fair queueing: a key's n-th waiter belongs to the n-th round from now, and rounds are
// served in order. One key alone is plain first come, and found at once from the tail.
void ConcurrencyGate::enqueue(Waiter& waiter) {
  std::uint64_t round = round_;
  for (Waiter* other = queue_.tail; other; other = other->prev_) {
    if (other->key_ != waiter.key_ || other->priority_ != waiter.priority_) continue;
    round = std::max(round, other->round_);
    break;
  }
  waiter.round_ = round + 1;
  Waiter* before = queue_.tail;
  while (before && (before->priority_ < waiter.priority_ ||
                    (before->priority_ == waiter.priority_ && before->round_ > waiter.round_))) {
    before = before->prev_;
  }
  waiter.place_ = Waiter::Place::queue;
  queue_.insert_after(before, waiter);
}

bool ConcurrencyGate::leave_queue(Waiter& waiter) {
  std::unique_lock lock(mutex_);
  if (waiter.place_ == Waiter::Place::queue) {
    queue_.remove(waiter);
    --queued_;
    queued_bytes_ -= waiter.bytes_;
    return true;
  }
  if (waiter.place_ == Waiter::Place::ready) {
    ready_.remove(waiter);
    return false;
  }
  // Its function may be running on another thread: it must have returned before the owner goes on
  // to destroy what it points to. From within the function itself there is nothing to wait for.
  called_.wait(lock, [&] { return calling_ != &waiter || caller_ == std::this_thread::get_id(); });
  return false;
}

void ConcurrencyGate::release() {
  std::unique_lock lock(mutex_);
  assert(in_flight_ > 0);
  --in_flight_;
  grant_and_call(lock);
}

void ConcurrencyGate::grant_and_call(std::unique_lock<std::mutex>& lock) {
  while (has_room() && queue_.head != nullptr) {
    Waiter& waiter = *queue_.head;
    queue_.remove(waiter);
    --queued_;
    queued_bytes_ -= waiter.bytes_;
    round_ = std::max(round_, waiter.round_);
    ++in_flight_;
    waiter.place_ = Waiter::Place::ready;
    ready_.push_back(waiter);
  }
  // One caller at a time, so that a function that releases at once makes a loop, not a recursion.
  if (caller_busy_) return;
  caller_busy_ = true;
  caller_ = std::this_thread::get_id();
  while (ready_.head != nullptr) {
    Waiter& waiter = *ready_.head;
    ready_.remove(waiter);
    calling_ = &waiter;
    void (*const granted)(void*) = waiter.granted_;
    void* const context = waiter.context_;
    lock.unlock();
    // From here on the waiter may be gone: its owner has been told.
    if (granted) granted(context);
    lock.lock();
    calling_ = nullptr;
    called_.notify_all();
  }
  caller_busy_ = false;
  caller_ = {};
}

int ConcurrencyGate::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

int ConcurrencyGate::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::size_t ConcurrencyGate::queued() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

std::size_t ConcurrencyGate::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_bytes_;
}

QueuePolicy ConcurrencyGate::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

void ConcurrencyGate::set_limit(int limit) {
  std::unique_lock lock(mutex_);
  limit_ = limit;
  grant_and_call(lock);
}

void ConcurrencyGate::set_policy(QueuePolicy policy) {
  const std::lock_guard lock(mutex_);
  policy_ = policy;
}

GateSlot& GateSlot::operator=(GateSlot&& other) noexcept {
  if (this != &other) {
    reset();
    gate_ = other.gate_;
    other.gate_ = nullptr;
  }
  return *this;
}

void GateSlot::reset() {
  ConcurrencyGate* const gate = gate_;
  gate_ = nullptr;
  if (gate) gate->release();
}

}  // namespace flashgate
