// kvasir-worker as a program: flags, exit codes, health, and its orderly end.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "tests/integration/cluster.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::BinaryPath;
using testing::Finished;
using testing::RunToEnd;
using testing::StartWorker;
using testing::WorkerServer;

struct Case {
  std::string name;
  std::vector<std::string> flags;
  int exit_code;
  std::string output;  // a part of it
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class WorkerFlagsTest : public ::testing::TestWithParam<Case> {};

TEST_P(WorkerFlagsTest, ExitCodeAndMessage) {
  std::vector<std::string> argv = GetParam().flags;
  argv.insert(argv.begin(), BinaryPath("kvasir-worker"));
  const Finished finished = RunToEnd(argv);
  EXPECT_EQ(finished.exit_code, GetParam().exit_code) << finished.output;
  EXPECT_NE(finished.output.find(GetParam().output), std::string::npos) << finished.output;
}

INSTANTIATE_TEST_SUITE_P(
    Flags, WorkerFlagsTest,
    ::testing::Values(Case{"Help", {"--help"}, 0, "--drain-seconds"},
                      Case{"Version", {"--version"}, 0, "kvasir-worker"},
                      Case{"Unknown", {"--bogus"}, 2, "--bogus is no flag"},
                      Case{"NoValue", {"--listen"}, 2, "--listen needs a value"},
                      Case{"BadMemory", {"--memory=2GB"}, 2, "2GiB"},
                      Case{"ZeroRanks", {"--ranks=0"}, 2, "at least 1"},
                      Case{"UnknownBackend", {"--backend", "tpu"}, 2, "auto, cpu or cuda"},
                      Case{"UnknownFaultPoint", {"--fault-point=moon=exit"}, 2, "prepare.start"},
                      Case{"NoLoopback", {"--listen=0.0.0.0:0"}, 2, "--insecure"},
                      Case{"NoAddress", {"--listen=nowhere"}, 2, "host:port"}),
    [](const auto& tested) { return tested.param.name; });

// With or without the toolkit in this build: who asks for a device is told what is missing.
TEST(WorkerProcessTest, WithoutADeviceThereIsNoCuda) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a device";
  const Finished cuda = RunToEnd({BinaryPath("kvasir-worker"), "--backend=cuda", "--listen=127.0.0.1:0"});
  EXPECT_EQ(cuda.exit_code, 4);
  EXPECT_NE(cuda.output.find("cuda"), std::string::npos) << cuda.output;
}

TEST(WorkerProcessTest, APortInUseIsAServiceFailure) {
  const WorkerServer first = StartWorker();
  const Finished second = RunToEnd({BinaryPath("kvasir-worker"), "--listen=" + first.address});
  EXPECT_EQ(second.exit_code, 4) << second.output;
  EXPECT_NE(second.output.find("is the port taken"), std::string::npos) << second.output;
}

TEST(WorkerProcessTest, IsHealthyAndEndsInOrder) {
  const WorkerServer worker = StartWorker();
  for (const char* service : {"", "kvasir.worker.v1.WorkerService"}) {
    KVASIR_EXPECT_OK(CheckHealth(worker.channel, service, std::chrono::seconds(10)));
  }
  worker.process->Signal(SIGTERM);
  EXPECT_EQ(worker.process->WaitForExit(), 0) << worker.process->output();
  EXPECT_NE(worker.process->output().find("event=worker_stop"), std::string::npos);
}

TEST(WorkerProcessTest, DescribesItself) {
  const WorkerServer worker = StartWorker({"--ranks=3", "--fact=driver.version=550"});
  grpc::ClientContext context;
  worker::v1::DescribeWorkerResponse facts;
  ASSERT_TRUE(worker.stub->DescribeWorker(&context, {}, &facts).ok());
  EXPECT_EQ(facts.backend(), "cpu");
  EXPECT_NE(facts.device(), "");
  EXPECT_EQ(facts.rank_count_max(), 3);
  EXPECT_EQ(facts.memory_bytes_per_rank(), std::int64_t{64} << 20);
  EXPECT_EQ(facts.free_bytes(), 3 * (std::int64_t{64} << 20));
  EXPECT_EQ(facts.comm_endpoint().host(), "127.0.0.1");
  EXPECT_GT(facts.comm_endpoint().port(), 0);
  std::string names;
  for (const worker::v1::Fact& fact : facts.facts()) names += fact.name() + "=" + fact.value() + "\n";
  for (const char* part : {"backend=cpu\n", "build.compiler=", "build.version=", "driver.version=550\n"}) {
    EXPECT_NE(names.find(part), std::string::npos) << names;
  }
}

}  // namespace
}  // namespace kvasir
