// SIGTERM and SIGINT as something main waits for.
#ifndef KVASIR_COMMON_RPC_STOP_SIGNAL_H_
#define KVASIR_COMMON_RPC_STOP_SIGNAL_H_

#include <csignal>

namespace kvasir {

// Construct first in main, before any thread: threads inherit the mask, so the signals reach Wait only. Also
// ignores SIGPIPE.
class StopSignal {
 public:
  StopSignal();
  // Blocks until SIGTERM or SIGINT; returns which.
  int Wait();

 private:
  sigset_t signals_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_STOP_SIGNAL_H_
