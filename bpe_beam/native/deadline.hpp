// How long one text may take. The parts of a tokenizer come out of files: some are so slow that a
// text would never end, by mistake or on purpose.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace bpe_beam {

/// A text took longer than it may.
struct TextTimeout {
  double seconds;  // that it had
};

/// The deadline of the text that a thread works on. Whoever may take long says how much it did.
class Deadline {
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kBetweenLooks = std::size_t{1} << 20;

  struct State {
    bool set = false;
    double seconds = 0;
    Clock::time_point end{};
    std::size_t steps_left = kBetweenLooks;
  };

 public:
  /// Sets the thread's deadline for as long as the scope lives, unless one is set already.
  class Scope {
   public:
    explicit Scope(double seconds) : sets_(!state().set) {
      if (!sets_) return;
      // Far beyond any text's time, and no overflow of the clock.
      const double most = 1e9;
      const auto given = std::chrono::duration<double>(seconds < most ? seconds : most);
      state() = {true, seconds, Clock::now() + std::chrono::duration_cast<Clock::duration>(given),
                 kBetweenLooks};
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (sets_) state().set = false;
    }

   private:
    bool sets_;
  };

  /// Stops the thread's clock for as long as the scope lives: the time is not the text's.
  class Pause {
   public:
    Pause() : paused_(state()) { state().set = false; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause() {
      paused_.end += Clock::now() - since_;
      state() = paused_;
    }

   private:
    State paused_;
    Clock::time_point since_ = Clock::now();
  };

  /// The time that is left, in seconds, 0 if it is over; infinity where no deadline is set.
  static double left() {
    if (!state().set) return std::numeric_limits<double>::infinity();
    const double seconds = std::chrono::duration<double>(state().end - Clock::now()).count();
    return seconds > 0 ? seconds : 0;
  }

  /// Throws TextTimeout if the time is over.
  static void check() {
    if (state().set && Clock::now() >= state().end) throw TextTimeout{state().seconds};
  }

  /// Notes that some steps (of about a nanosecond) were done, and now and then looks at the clock.
  static void spend(std::size_t steps) {
    State& now = state();
    if (steps < now.steps_left) {
      now.steps_left -= steps;
      return;
    }
    now.steps_left = kBetweenLooks;
    check();
  }

 private:
  static State& state() {
    static thread_local State state;
    return state;
  }
};

}  // namespace bpe_beam
