#include "common/rpc/stop_signal.h"

namespace kvasir {

StopSignal::StopSignal() : signals_() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

int StopSignal::Wait() {
  int signal = 0;
  sigwait(&signals_, &signal);
  return signal;
}

}  // namespace kvasir
